"""Rules about tables as a whole, which are expected and never searched for."""
