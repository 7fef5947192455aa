"""Which values occur in which columns: clusters, a state of the whole profile.

state.py       the state, with its operations: discover, change, compact, save, load, compare
clusters.py    clusters of columns, with their numbers of values
shared.py      how many values every two columns share, and the dependencies that follow
overlaps.py    these numbers as a matrix, read from files piece by piece
counting.py    counting the values of rows
changes.py     how the rows of a batch change clusters and dependencies of several columns
n_ary.py       dependencies of several columns: candidates, and what is known about them
composite.py   foreign keys of two columns, into keys of other tables
tuples.py      counted tuples of several columns, kept under batches
compaction.py  merging runs
storage.py     the files
"""
