"""Record the kernel's trace for one measurement in trace instances of our own."""
