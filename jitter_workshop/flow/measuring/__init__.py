"""Measure once: resolve the request, run the workload while the kernel is traced or counted, and keep the run."""
