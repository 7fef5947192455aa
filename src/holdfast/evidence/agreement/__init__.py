"""Witnessed evidence of keys and functional dependencies: which columns pairs of rows agree in.

validation.py    propose, plan, search, learn: the search that makes candidates exact
search_plans.py  the ways to search the rows for pairs that refute candidates, and their costs
listed_pairs.py  all pairs of rows that agree in almost a key, so that deletes need no search
"""
