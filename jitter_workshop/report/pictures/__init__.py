"""Draw the chart as SVG and PNG."""
