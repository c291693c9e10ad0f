"""Read the processor: topology, clock, frequency, idle states, isolation, time since boot."""
