"""Combine the kernel's trace with a run's stalls: find what ran where, and the cause of each stall. Pure functions."""
