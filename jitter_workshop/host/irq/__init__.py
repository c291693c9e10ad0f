"""Read interrupts, their affinities, and network cards."""
