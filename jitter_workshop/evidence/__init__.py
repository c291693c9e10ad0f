"""Split each stall of a run, by pure functions on the kernel's trace, into causes whose times sum to the stall."""
