"""The kinds of constraints."""
