"""Keep sessions (runs, proofs, traces, imports) on disk, each file completely or not at all."""
