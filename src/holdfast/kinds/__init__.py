"""Kinds of constraints, a folder each, and what they have in common."""
