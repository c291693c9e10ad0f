"""Read the kernel's release and configuration, and find the hypervisor below it."""
