"""Draw percentile curves as text on log-log axes, as the only package that imports plotext."""
