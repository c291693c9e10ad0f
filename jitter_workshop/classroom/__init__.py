"""A class on shared machines: what its members did, for its instructor to see. Turns are the agent's."""
