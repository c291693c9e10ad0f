"""Drive the terminal: input, restoring it after a kill, and pages in a browser."""
