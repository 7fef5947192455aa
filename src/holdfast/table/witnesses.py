"""Rows as they are shown, by their ids."""

from holdfast.tasks.shown import plain, rows_as_text

__all__ = ["plain", "rows_as_text"]
