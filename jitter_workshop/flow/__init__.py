"""Do what verbs, screens and the plain walk ask for: one package a subject, with no screen in any of them."""
