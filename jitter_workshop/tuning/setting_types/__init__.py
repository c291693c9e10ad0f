"""Read, compare and write settings, with one class for each kind of setting."""
