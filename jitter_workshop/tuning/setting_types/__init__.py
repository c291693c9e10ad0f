"""Hold one class for each form of setting. The class defines how such a setting is read, compared and written."""
