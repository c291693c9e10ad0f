"""Drive the terminal: read input, restore it after a kill, draw screens into web pages."""
