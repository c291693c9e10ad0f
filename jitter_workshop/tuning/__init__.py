"""Plan, apply and restore settings. A restore undoes the writes that the journals list, and no others."""
