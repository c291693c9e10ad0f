"""Compute histograms, percentiles and verdicts; every function is pure."""
