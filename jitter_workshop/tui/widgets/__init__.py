"""Show one thing each: the chart, the CPU map, the key bar, the path, a sheet of text."""
