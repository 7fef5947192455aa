"""Kinds of constraints, a folder each; base.py says what a kind is, registry.py lists them."""
