"""Read a host's files in sysfs and /proc below one root, on the live host or in a recording, and write to none."""
