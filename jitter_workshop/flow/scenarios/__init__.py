"""Plant a scenario in a practice machine, check its requirements inside, and note that it was solved."""
