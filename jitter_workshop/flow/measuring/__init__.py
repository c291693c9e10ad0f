"""Measure once: resolve the request, run the workload, trace or count beside it, keep the run."""
