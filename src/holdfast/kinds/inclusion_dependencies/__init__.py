"""Inclusion dependencies, and the foreign keys among them."""
