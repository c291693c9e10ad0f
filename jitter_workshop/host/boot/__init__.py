"""Read the boot loader, its menu and the kernel's boot parameters."""
