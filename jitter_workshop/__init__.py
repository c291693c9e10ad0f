"""Find where latency jitter on this Linux host comes from, and remove it."""

__version__ = "0.1.0"
