"""Plan, run and show a proof."""
