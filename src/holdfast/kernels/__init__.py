"""Compiled loops: NumPy arrays in, NumPy arrays out. Wrappers validate, kernels trust."""
