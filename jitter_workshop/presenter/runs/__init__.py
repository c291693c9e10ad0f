"""Put runs, their curves, causes and comparisons into lines, and programs that were traced."""
