"""The part that runs as root: a protocol of JSON lines, and nothing that a caller says is believed."""
