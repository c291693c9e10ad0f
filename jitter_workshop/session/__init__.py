"""Keep sessions on disk: runs, proofs, traces and imports. Each is stored whole or not at all."""
