"""Serve many callers as root: the socket, who calls, and what the class lets them do."""
