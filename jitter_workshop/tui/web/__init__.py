"""Serve the workshop in a browser on loopback."""
