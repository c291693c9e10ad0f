"""Set up a class host, post a member's progress, and read the board."""
