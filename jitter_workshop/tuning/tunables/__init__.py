"""Hold one class for each tunable, with its assessment and the writes that would improve the host."""
