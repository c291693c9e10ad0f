"""Keep sessions on disk (runs, proofs, traces and imports), each stored whole or not at all."""
