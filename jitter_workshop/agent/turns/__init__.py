"""Decide who has the turn on a shared machine, and keep the turn's control group."""
