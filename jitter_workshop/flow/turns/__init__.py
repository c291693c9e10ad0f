"""Hold this machine's turn on a class host while something is measured or changed."""
