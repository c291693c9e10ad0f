"""Write documents for people and other tools; names in them are cleaned of dangerous characters."""
