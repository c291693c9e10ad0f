"""Run the workshop as full screens with Textual."""
