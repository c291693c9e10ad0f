"""Plan, apply and restore settings; each restore follows the writes in the journal."""
