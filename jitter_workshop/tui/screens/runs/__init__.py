"""List the runs, and show what took the time of a run."""
