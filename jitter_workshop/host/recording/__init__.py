"""Record a host into a folder or a file, without what is private, and read it back."""
