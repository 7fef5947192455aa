"""Functional dependencies.

kind.py     functional dependencies as a kind of constraint
reading.py  what a version's files say: a sequence of as many as there are
show.py     functional dependencies in JSON and on the terminal
"""
