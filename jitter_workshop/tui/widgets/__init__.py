"""Hold the widgets: the chart, the map of CPUs, the footer, the line of steps, the path, and a sheet of text."""
