"""Define the plain data that the packages pass to one another, and convert these data to JSON and back."""
