"""Keep what the members of a class did, and make the host that they share."""
