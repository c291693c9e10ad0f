"""Read a host from one root: sysfs and /proc, live or recorded; no function here writes to it."""
