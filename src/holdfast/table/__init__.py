"""The rows of a table: segments, indexes, compaction, and finding the rows that a batch means.

state.py       the rows of a version
batch.py       reading a batch, and applying it to the rows
netting.py     change rows as a batch: what is left of all the changes of each row
change.py      which rows a batch adds and removes
snapshot.py    what changed, from all rows as they are now
matching.py    the rows that deletes and updates mean
columns.py     facts about columns, as batches change them
indexes.py     the choice of columns to sort
indexing.py    building the indexes
compaction.py  merging small segments
placement.py   dividing segments among tasks
exchange.py    jobs that bring rows with equal values together
"""
