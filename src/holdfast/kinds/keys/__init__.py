"""Keys, and non-keys beside them.

kind.py     keys as a kind of constraint
reading.py  what a version's files say
show.py     keys and non-keys in JSON and on the terminal
"""
