"""Draw the charts of runs as SVG and PNG files."""
