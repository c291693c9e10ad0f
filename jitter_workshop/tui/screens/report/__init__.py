"""Preview a report before it is written."""
