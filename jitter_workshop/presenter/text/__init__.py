"""Build lines of styled text: words, tables, pictures of CPUs and of masks, terms of the glossary."""
