"""Benchmarks: figures and ratios measured in one run, never asserted in tests."""
