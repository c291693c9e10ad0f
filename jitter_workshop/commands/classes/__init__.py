"""Hold one module for each group of actions of the verb ``class``."""
