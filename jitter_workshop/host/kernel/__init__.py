"""Read the kernel: release, scheduler, RCU, memory, watchdogs, workqueues, mitigations."""
