"""Plan, apply and restore settings of a host. A restore undoes only the writes that the journals list."""
