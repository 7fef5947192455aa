"""Functional dependencies."""
