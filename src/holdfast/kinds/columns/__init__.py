"""Rules about the values of single columns: domains, bounds and patterns."""
