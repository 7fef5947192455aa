"""What pairs of rows show: evidence, either counted or witnessed.

pairs.py      the interface: minimal sets, errors and violating pairs, whatever the strategy
strategy.py   the choice between counting and searching, by the time that counting would take
devices.py    the choice between processors and a GPU, by how fast they count
counted.py    all evidence with its numbers of pairs
counting.py   the jobs that count
tiles.py      dividing pairs of rows among tasks
witnessed.py  maximal evidence, with pairs of rows that show it
agreement/    the search for keys and functional dependencies
comparison/   the search in any other space of comparisons
scope.py      the rows that are searched, and what they are searched with
mirrors.py    sets of atoms as the other row of a pair sees them
upkeep.py     what is stored of a space so that a batch costs little
storage.py    the files
verify.py     stored evidence compared with that of the rows
"""
