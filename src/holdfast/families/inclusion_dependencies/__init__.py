"""Inclusion dependencies: values in clusters, n-ary candidates, foreign keys."""
