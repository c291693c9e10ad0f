"""List runs, and show one run's causes."""
