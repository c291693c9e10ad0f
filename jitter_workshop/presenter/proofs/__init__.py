"""Put proofs and screenings of settings into lines."""
