"""Hold the full screens: a module each, or a package for a subject of several."""
