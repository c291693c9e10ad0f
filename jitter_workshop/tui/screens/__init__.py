"""Hold the full screens: a module for each, or a package for several screens of one subject."""
