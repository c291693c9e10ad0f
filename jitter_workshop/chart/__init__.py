"""Draw percentile curves as text on log-log axes; the only package that imports plotext."""
