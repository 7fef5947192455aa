"""Denial constraints: sets of weak predicates that no two rows satisfy."""
