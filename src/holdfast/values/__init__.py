"""Which values occur in which columns, as clusters: a state of the whole profile.

state.py       the state's operations: discover, change by a batch, compact, save, compare
clusters.py    the state itself: clusters of columns, with their numbers of values
shared.py      how many values every two columns share, and the dependencies that follow
overlaps.py    these numbers as a matrix, read from files piece by piece
changes.py     what the rows of a batch do to clusters and to dependencies of several columns
n_ary.py       dependencies of several columns: candidates, and what is known of them
compaction.py  merging runs
storage.py     the files
verify.py      the kept state beside one of the rows
"""
