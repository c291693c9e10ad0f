"""Change the host as root: take tunable ids over JSON lines, plan again, journal, write, restore."""
