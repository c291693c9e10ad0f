"""Read a host's files in /sys and /proc, on the live host or from a recording, and write to none."""
