"""Measure how often verdicts are right on real runs: the plan, the recording, the data and what they say (see
README.md)."""
