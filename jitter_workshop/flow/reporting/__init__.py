"""Build a report's document from a session and write its files."""
