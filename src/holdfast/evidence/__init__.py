"""What pairs of rows show: counted, or witnessed, and the choice between the two.

pairs.py        PairEvidence: minimal sets, errors and violating pairs, whatever the strategy
strategy.py     counted or witnessed: the choice, by the time that counting would take
devices.py      processors or a GPU: the choice, by how fast they count
counted.py      every agree-set with its number of pairs; counting.py has its jobs
witnessed.py    maximal evidence with pairs of rows that show it
validate.py     propose, validate, learn: the search that finds it
comparisons.py  what pairs are compared in: comparisons and their atoms
storage.py      the files
"""
