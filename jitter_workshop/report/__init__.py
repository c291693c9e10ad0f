"""Write documents for people and for other tools; all names in these documents are cleaned."""
