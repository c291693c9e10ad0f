"""Hold one class for each form of setting: how it is read, compared and written."""
