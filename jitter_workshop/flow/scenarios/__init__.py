"""Plant a scenario in a practice machine, check inside what is true, and note what was solved."""
