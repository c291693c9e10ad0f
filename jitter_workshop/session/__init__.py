"""Keep sessions (runs, proofs, traces, imports) and preferences on disk, each file completely or not at all."""
