"""Split each stall of a run into its causes, by the kernel's trace.

The times of the causes sum to the time of the stall. All functions are pure.
"""
