"""Hold the base of all screens, and the dialogs that any screen may open."""
