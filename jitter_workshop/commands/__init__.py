"""Hold one module for each verb of the command line."""
