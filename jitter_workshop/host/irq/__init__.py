"""Read interrupts, where each may arrive, and network cards."""
