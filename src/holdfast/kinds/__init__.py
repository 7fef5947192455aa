"""Kinds of constraints, a folder each, and what they have in common.

registry.py      the list of kinds
base.py          what a kind is
parts.py         the lists that can be shown of a kind
stored.py        what a commit has of a table and of the profile, for kinds to read
table_state.py   a table with its evidence, before and after a batch
sequences.py     long lists of constraints, made when they are asked for
sets.py          what a batch did to minimal sets, for kinds that are read from pairs of rows
examine.py       what a kind says about one rule
sides.py         the same for keys and functional dependencies
column_rules.py  the same for rules of single columns
exporter.py      how constraints are written in the forms of other tools
ranking.py       which constraints matter
chance.py        whether a rule holds by chance
suggested.py     which rules are worth expecting

keys/, functional_dependencies/, inclusion_dependencies/, denial_constraints/, not_null/,
columns/, whole_tables/
"""
