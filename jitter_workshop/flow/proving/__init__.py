"""Prove a change by paired rounds in random order, screen many settings for the few that matter, and find out what
became of a proof or a screening that was cut off."""
