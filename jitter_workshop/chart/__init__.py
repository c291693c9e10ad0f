"""Draw percentile curves as text on log-log axes. No other package imports plotext."""
