"""Witnessed evidence of any other space of comparisons, which denial constraints need.

engine.py         discovery, and what a batch changes
completion.py     exact evidence without comparing all pairs of rows
regions.py        which pairs to compare all of, so that many candidates are validated at once
batch_indexes.py  which indexes find the rows that violate constraints together with a new row
"""
