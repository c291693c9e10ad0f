"""Write a report as Markdown with its charts beside it."""
