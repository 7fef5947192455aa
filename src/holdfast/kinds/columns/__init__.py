"""Rules about the values of single columns: domains and bounds."""
