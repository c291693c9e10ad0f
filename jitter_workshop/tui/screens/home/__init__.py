"""Show the path through the chapters, and the summary of the course."""
