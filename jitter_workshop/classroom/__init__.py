"""Show an instructor what the members of a class did on shared machines. Turns are the agent's."""
