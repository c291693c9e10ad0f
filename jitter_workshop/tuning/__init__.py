"""Plan, apply and restore settings, where a restore undoes the writes that the journals list, and no others."""
