"""Read power supply, temperatures, throttling, and firmware that stops CPUs."""
