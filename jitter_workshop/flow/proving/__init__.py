"""Prove a change by paired rounds in random order, and recover a proof that was cut off."""
