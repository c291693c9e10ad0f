"""Hold what several verbs share: options, questions, output."""
