"""Hold the base of all screens, and the dialogs that any of them may open."""
