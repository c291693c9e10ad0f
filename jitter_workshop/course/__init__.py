"""Load a course from its files, and judge predictions and marks."""
