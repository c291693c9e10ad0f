"""Hold what several verbs share: options, output, importing a report."""
