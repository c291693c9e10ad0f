"""Plan, apply and restore settings; each restore follows what the journal says was written."""
