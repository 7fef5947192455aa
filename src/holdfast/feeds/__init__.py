"""Change feeds: sources of changes that a profile follows, one contract and an adapter for each.

An adapter says where the changes are and how far they go. That they are applied once, and what is
left of several changes of one row, is none of its concern.

    contract.py   what a feed is: positions, steps, and how far a step may go
    followed.py   the feeds to follow, as options or a file say it
    addresses.py  which feed an address means
    folder.py     files in a folder, as they arrive
    events.py     events of Debezium in such files
    delta.py      the change feed of a Delta table
    kafka.py      topics of Kafka: events of Debezium, or rows in JSON
    transactions.py  how far a step of topics goes that divides no transaction
"""
