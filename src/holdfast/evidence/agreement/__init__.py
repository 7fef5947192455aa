"""Witnessed evidence of keys and functional dependencies: the columns in which pairs of rows agree.

engine.py        discovery, and what a batch changes
validation.py    propose, plan, search, learn: the loop that makes candidates exact
knowledge.py     what is known about pairs of rows during validation
planning.py      what a round searches for, and how
search_plans.py  the ways to search the rows for pairs that refute candidates, and their costs
listed_pairs.py  all pairs of rows that agree in almost a key, so that deletes need no search
"""
