"""Rules that people rely on: what each is measured by, and its violations, kept under batches.

tuples.py     counted tuples: keys, functional dependencies and inclusions
pairs.py      counted pairs of rows: denial constraints
state.py      all expectations of a profile in a version: declared, changed by a batch, verified
violating.py  rows that violate a rule, some of them, to be shown
"""
