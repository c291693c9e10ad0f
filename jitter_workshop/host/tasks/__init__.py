"""Read tasks, their limits, their control groups and cpusets."""
