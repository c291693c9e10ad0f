"""Define the number that every JSON object of this program begins with."""

FORMAT_VERSION = 1
"""Under the same number, fields may be added, but not renamed or removed."""
