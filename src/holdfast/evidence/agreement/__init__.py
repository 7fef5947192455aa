"""Witnessed evidence of keys and functional dependencies: which columns pairs of rows agree in.

engine.py        discovery, and what a batch changes
validation.py    propose, plan, search, learn: the loop that makes candidates exact
planning.py      what a round searches for, and in which way
knowledge.py     what is known of pairs of rows, and what one search adds to it
search_plans.py  the ways to search the rows for pairs that refute candidates, and their costs
listed_pairs.py  all pairs of rows that agree in almost a key, so that deletes need no search
"""
