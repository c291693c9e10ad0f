"""Read the kernel's trace: its binary format, its events and their symbols."""
