"""Run the whole workshop line by line, on any terminal and for a screen reader, without Textual."""
