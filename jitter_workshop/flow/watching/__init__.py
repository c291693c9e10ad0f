"""Watch for hours: keep the kernel's trace in overwriting buffers, and freeze it when a stall comes."""
