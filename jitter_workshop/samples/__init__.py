"""Hold the three small programs of the last chapter, each run as a process of its own."""
