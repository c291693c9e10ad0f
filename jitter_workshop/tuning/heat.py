"""Tunables of this family."""
