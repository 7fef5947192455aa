"""How far rows are from a rule, and which rows break it: one evaluator for all kinds of rules.

form.py            what can be asked of a rule, whatever it says
single_rows.py     rules that a row breaks by itself
agreeing.py        rows that agree on some columns: keys and functional dependencies
contained.py       tuples that occur elsewhere: inclusion dependencies
pairs.py           ordered pairs of rows that satisfy all predicates: denial constraints
orders.py          rows in order: denial constraints that nearly hold
question.py        the rows that are asked, and rows to be shown
expectations.py    the rules that are expected in a version: declared, changed by a batch, verified
quarantine.py      a batch without the rows that break them
history.py         when a rule held
version.py         what the files of a version say of the rules that hold in it
near.py            rules that nearly hold
looked_up.py       keys among them, and dependencies that hardly repeat, kept by look-ups
near_kept.py       their list in a version, kept under batches
near_estimate.py   which candidates may nearly hold, estimated from drawn rows
suspects.py        the cells that rules which nearly hold suspect
missing.py         values that another table lacks, and those of it that are an edit away
"""
