"""Put runs, proofs, causes, plans and settings into lines of text for the screen, the plain walk and the command
line."""
