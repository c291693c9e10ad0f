"""Record a host into a folder or a file, without private data, and read recordings."""
