"""Read this host, apply and restore settings through the agent, and keep a log of each change."""
