"""What an export consists of: texts, by the names of the files that they belong into."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from holdfast.model.errors import InputError
from holdfast.report.written import whole


class Exported(Mapping[str, str]):
    """The text of each file by its name; ``str`` is all of it.

    >>> exported = Exported({"a.sql": "SELECT 1;\\n"}, "-- ")
    >>> [*exported], str(exported)
    (['a.sql'], 'SELECT 1;\\n')
    """

    def __init__(self, files: Mapping[str, str], comment: str, note: str = "") -> None:
        self._files, self._comment = dict(files), comment
        self.note = note
        """What is to be said about it; empty: nothing."""

    def __getitem__(self, name: str) -> str:
        return self._files[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def __str__(self) -> str:
        if len(self) == 1:
            return next(iter(self._files.values()))
        headed = (f"{self._comment}{name}\n\n{text}" for name, text in self._files.items())
        return "\n".join(headed)

    def __repr__(self) -> str:
        return f"<Exported {', '.join(self._files)}>"

    def write(self, path: str | os.PathLike[str]) -> list[str]:
        """Write the one file to a path, or all of them into a folder; says which were written.

        Each is there whole or not at all; what was there under its name goes.
        """
        target = Path(path)
        folder = target.is_dir() or str(path).endswith(os.sep)
        if len(self) > 1 and not folder and (target.exists() or target.suffix):
            raise InputError(
                f"{path}: there are {len(self)} files to write ({', '.join(self)}); "
                "give a folder for them"
            )
        alone = len(self) == 1 and not folder
        places = {target if alone else target / name: text for name, text in self._files.items()}
        for place, text in places.items():
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                with whole(place) as file:
                    file.write_text(text, "utf-8", newline="\n")
            except OSError as error:
                raise InputError(f"{place} cannot be written: {error.strerror}") from error
        return [*map(str, places)]
