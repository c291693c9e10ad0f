"""The smallest terminal for the screen; no Textual in here, so that the plain walk starts without it."""

from __future__ import annotations

LEAST_WIDTH, LEAST_HEIGHT = 60, 16
"""Smaller terminals go line by line; one that is made smaller gets one sentence instead of a torn screen."""
