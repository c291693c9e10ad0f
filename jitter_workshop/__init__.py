"""Jitter Workshop: where latency jitter comes from on this Linux host, and how to remove it."""

__version__ = "0.1.0"
