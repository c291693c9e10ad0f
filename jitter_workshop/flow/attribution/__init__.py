"""Name the causes of a run's stalls from its trace, or from counters where no trace was allowed."""
