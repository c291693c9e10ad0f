"""Run a measurement or a proof on a thread, without disturbing what is measured."""
