"""Put the course, its chapters, guesses and hunts into lines."""
