"""Prove changes, screen settings, and find settings that a killed proof or screening left applied."""
