"""Prove changes, screen settings, and find out what killed proofs and screenings left on the host."""
