"""Hold the code that several verbs of the command line share: options, questions, output."""
