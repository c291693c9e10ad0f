"""Carry out the requests of verbs, screens and the plain walk. Each subject has its package; no package has a
screen."""
