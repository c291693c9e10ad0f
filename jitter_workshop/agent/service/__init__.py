"""Serve many callers as root: listen on the socket, identify callers, and enforce the rules of the class."""
