"""Show this host's status and settings, and apply or restore them."""
