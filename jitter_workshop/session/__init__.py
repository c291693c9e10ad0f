"""Keep sessions on disk (runs, proofs, traces, imports); each file is stored completely or not at all."""
