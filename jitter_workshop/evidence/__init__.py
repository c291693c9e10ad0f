"""Split each stall of a run by the kernel's trace into causes that sum to it; every function is pure."""
