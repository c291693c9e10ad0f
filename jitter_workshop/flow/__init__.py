"""Carry out the requests of verbs, screens and the plain walk, in a package for each subject; none has a screen."""
