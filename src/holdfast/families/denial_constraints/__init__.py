"""Denial constraints: which minimal sets of weak predicates are reported."""
