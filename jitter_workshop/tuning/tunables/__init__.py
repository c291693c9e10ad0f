"""Hold one class for each tunable: how it is assessed, and which writes would improve it."""
