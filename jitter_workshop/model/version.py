"""The number that every JSON object of this program begins with (DESIGN §9)."""

FORMAT_VERSION = 1
"""Fields may be added under the same number, not renamed or removed."""
