"""Write documents for people and for other tools; every name in them is cleaned."""
