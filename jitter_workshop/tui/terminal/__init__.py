"""Drive the terminal: read its input, restore it after a kill, and draw into pages of a browser."""
