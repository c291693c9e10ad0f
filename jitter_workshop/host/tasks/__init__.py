"""Read tasks, their limits, their control groups and their cpusets."""
