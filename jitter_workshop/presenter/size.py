"""Give the size of the smallest terminal for the screen. There is no Textual here, so that the line-by-line workshop
starts without it."""

from __future__ import annotations

LEAST_WIDTH, LEAST_HEIGHT = 60, 16
"""A smaller terminal gets the line-by-line workshop. A terminal that becomes smaller gets one sentence, not a torn
screen."""
