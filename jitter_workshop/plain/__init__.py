"""Run the whole workshop line by line, without Textual, on any terminal and for screen readers."""
