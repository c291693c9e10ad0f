"""Keep sessions on disk: runs, proofs, traces, imports, whole or not at all."""
