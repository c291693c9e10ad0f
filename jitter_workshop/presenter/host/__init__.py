"""Put the state of a host, its plan and its changes into lines."""
