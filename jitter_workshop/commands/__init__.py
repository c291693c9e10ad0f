"""Hold the verbs of the command line, one module for each."""
