"""What pairs of rows show: counted, or witnessed, and the choice between the two.

pairs.py       PairEvidence: minimal sets, errors and violating pairs, whatever the strategy
strategy.py    counted or witnessed: the choice, by the time that counting would take
devices.py     processors or a GPU: the choice, by how fast they count
counted.py     every agree-set with its number of pairs; counting.py has its jobs, tiles.py divides
               the pairs among tasks
witnessed.py   maximal evidence with pairs of rows that show it
agreement/     the search that finds it for keys and functional dependencies
comparison/    the one for any other space of comparisons
upkeep.py      what is kept of a space so that a batch costs little
storage.py     the files
"""
