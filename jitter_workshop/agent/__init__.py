"""Change the host as root. The agent takes tunable ids as JSON lines, makes the plan again, journals the changes,
writes them, and restores them."""
