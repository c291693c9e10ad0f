"""Show a class: waiting for the turn, and the page for the projector."""
