"""Say what runs, proofs, causes, plans and settings show, as lines for every surface."""
