"""Columns without nulls: rules about single columns, which are expected and never searched for.

kind.py     not null as a kind of constraint
examine.py  what can be asked of one rule
"""
