"""Hold what all screens share: keys, frames and themes."""
