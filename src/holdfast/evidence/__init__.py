"""What pairs of rows show: counted, or witnessed, and the choice between the two."""
