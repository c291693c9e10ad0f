"""Store the results of the members of a class, and set up the host that they share."""
