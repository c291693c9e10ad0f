"""Lead a learner through a chapter: its steps, guesses, hunts and summary; check chapters and make new ones."""
