"""Lead a learner through a chapter: its steps, predictions, hunts and summary."""
