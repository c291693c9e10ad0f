"""Read files in /sys and /proc of this host or a recorded host; write no files."""
