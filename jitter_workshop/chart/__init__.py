"""Draw percentile curves as text on log-log axes; the only room that knows plotext."""
