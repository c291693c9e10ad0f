"""The kernel's trace and a run's stalls: who ran where, and the cause of each stall. Pure functions."""
