"""The project's own benchmarks (``make bench``): ratios from one run, raw data kept in ``bench-results/``.

Nothing here is a test: no figure is asserted. Do nothing else on the machine while it runs.
"""
