"""Hold the full screens, one package a subject."""
