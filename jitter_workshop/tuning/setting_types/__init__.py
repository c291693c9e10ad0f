"""Define, for each form of setting, how such a setting is read, compared and written: one class for each form."""
