"""Change the host as root, by a protocol of JSON lines in which no claim of the caller is trusted."""
