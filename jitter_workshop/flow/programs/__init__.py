"""Explain a program of the user's own: find or start it, follow its threads, and add up their time."""
