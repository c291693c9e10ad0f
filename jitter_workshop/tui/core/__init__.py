"""Hold what all screens share: keys, themes, and background tasks."""
