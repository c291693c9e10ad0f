"""Write a plan as a POSIX shell script with its undo."""
