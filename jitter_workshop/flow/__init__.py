"""Hold the packages that carry out the requests of commands, of screens and of the line-by-line workshop. No module
here draws a screen."""
