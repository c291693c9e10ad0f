"""Hold the packages that carry out what a command, a screen or the plain text walk asks for. No module here draws a
screen.
"""
