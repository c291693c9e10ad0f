"""Make lines of text for runs (their curves, causes and comparisons) and for traced programs."""
