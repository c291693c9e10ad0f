"""Write runs and status in the formats of other tools."""
