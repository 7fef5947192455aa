"""Versions published as Delta tables, by the package ``deltalake``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from holdfast.model.errors import InputError, SetupError
from holdfast.model.results import Results
from holdfast.runtime.objects import message_of

_WRITER = "holdfast"
"""The application whose last version a table names, as Delta's protocol has it."""


@dataclass(frozen=True)
class DeltaTables:
    """Four tables in a folder, or at an address of an object store."""

    path: str

    def last(self) -> int:
        """The version that the last commit to the table of batches names."""
        with self._errors():
            from deltalake import DeltaTable

            at = self._at("batches")
            known = DeltaTable.is_deltatable(at)
            return (DeltaTable(at).transaction_version(_WRITER) or 0) if known else 0

    def replace(self, name: str, kind: type, values: Sequence[Any]) -> None:
        """All rows of a table."""
        with self._errors():
            from deltalake import write_deltalake

            rows = Results(kind, values).to_arrow()
            write_deltalake(self._at(name), rows, mode="overwrite", schema_mode="overwrite")

    def add(self, name: str, kind: type, values: Sequence[Any], version: int) -> None:
        """The rows of a version, in a commit that names it."""
        with self._errors():
            from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

            rows, at = Results(kind, values).to_arrow(), self._at(name)
            said = CommitProperties(app_transactions=[Transaction(_WRITER, version)])
            if DeltaTable.is_deltatable(at):
                only = f"version = {version}"
                write_deltalake(at, rows, mode="overwrite", predicate=only, commit_properties=said)
            else:
                write_deltalake(at, rows, mode="append", commit_properties=said)

    def _at(self, name: str) -> str:
        return f"{self.path.rstrip('/')}/{name}"

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn the library's errors into those of ours."""
        try:
            from deltalake.exceptions import DeltaError
        except ImportError as missing:
            raise SetupError(
                f"delta:{self.path}: Delta tables are written by deltalake, and there is none "
                f"({missing}); install it with: pip install 'holdfast[delta]'"
            ) from missing
        try:
            yield
        except (DeltaError, OSError) as error:
            raise InputError(
                f"delta:{self.path}: cannot be written ({message_of(error)})"
            ) from None
