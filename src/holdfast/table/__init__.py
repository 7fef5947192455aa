"""A table's rows in a profile: segments, indexes, compaction, rows that a batch means."""
