"""A table's rows in a profile: segments, indexes, compaction, rows that a batch means.

state.py       Table: the rows of one version
batch.py       a batch is read, and applied to the rows; change.py is what it did to them
matching.py    the rows that deletes and updates mean
indexes.py     which columns to sort; indexing.py builds the indexes
compaction.py  small segments are merged
placement.py   segments are dealt out to tasks
witnesses.py   the few raw rows that are shown
"""
