"""Carry out the requests of commands, of screens and of the line-by-line workshop, without drawing a screen."""
