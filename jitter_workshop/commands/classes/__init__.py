"""Hold the subcommands of ``class``."""
