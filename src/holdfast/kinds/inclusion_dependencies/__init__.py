"""Inclusion dependencies: values in clusters, n-ary candidates, foreign keys.

kind.py          inclusion dependencies as a kind of constraint
reading.py       what a version's files say
show.py          inclusion dependencies and foreign keys in JSON and on the terminal
values.py        the values of all tables: discovered, changed, compacted, saved
clusters.py      Inclusion: clusters, shared values, and the dependencies that follow
changes.py       rows that came and went move values between clusters
n_ary.py         dependencies of several columns
foreign_keys.py  which dependencies look like foreign keys
missing.py       values that are missing on the referenced side
compaction.py    runs of values are merged
verify.py        kept values beside those of the rows
storage.py       the files
"""
