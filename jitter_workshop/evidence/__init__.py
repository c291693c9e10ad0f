"""Split each stall of a run by the kernel's trace into causes whose times sum to the stall. Every function is pure."""
