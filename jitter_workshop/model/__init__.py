"""Define the plain data that rooms hand to one another, and how it becomes JSON and back."""
