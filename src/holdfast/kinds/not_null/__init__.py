"""Columns without nulls: rules about single columns, which are expected and never searched for."""
