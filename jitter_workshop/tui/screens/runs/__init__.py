"""List the runs, and show what took the time of one of them."""
