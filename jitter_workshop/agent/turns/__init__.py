"""Decide whose turn a shared machine is, and hold the turn's control group."""
