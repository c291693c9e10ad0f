"""Say how small a terminal may be for the full screen."""

from __future__ import annotations

LEAST_WIDTH, LEAST_HEIGHT = 60, 16
"""The smallest terminal for the screen, in characters. A smaller one gets the line-by-line workshop. A terminal that
becomes smaller shows only a sentence that says so."""
