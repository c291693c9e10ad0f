"""Plan and apply settings, and restore only the settings that the journals list."""
