"""Read the kernel's release and configuration, and find the hypervisor that runs this host."""
