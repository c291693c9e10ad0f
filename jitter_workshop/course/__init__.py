"""Load a course from its files, and judge guesses and marks."""
