"""Hold the turn: one user's right to measure and change a host that several users share."""
