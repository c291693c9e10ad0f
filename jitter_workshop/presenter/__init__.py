"""Put runs, proofs, causes, plans and settings into lines of text for every surface."""
