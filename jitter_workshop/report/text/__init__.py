"""Write results as text of at most 80 columns for a terminal, a file or a mail."""
