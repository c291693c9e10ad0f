"""Read what the processor tells about itself: topology, clock, frequency, idle states, isolation, and CPU times since
boot."""
