"""Put the class, its turns and its board into lines."""
