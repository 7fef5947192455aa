"""Which values occur in which columns, as clusters: a state of the whole profile.

state.py       ValueState, with the operations: discover, change, compact, save, load, compare
clusters.py    clusters of columns, with their numbers of values
shared.py      how many values every two columns share, and the dependencies that follow
overlaps.py    these numbers as a matrix, read from files piece by piece
changes.py     what the rows of a batch do to clusters and to dependencies of several columns
n_ary.py       dependencies of several columns: candidates, and what is known of them
counting.py    the values of rows, counted by the tasks that need them or into runs
compaction.py  merging runs
storage.py     the files
verify.py      the stored state beside one of the rows
"""
