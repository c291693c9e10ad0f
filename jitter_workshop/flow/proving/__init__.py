"""Prove a change by paired rounds in random order, find the few of many settings that matter, and recover both."""
