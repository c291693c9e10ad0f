"""Watch for hours: record the kernel's trace in overwriting buffers, and stop and read the trace after a stall."""
