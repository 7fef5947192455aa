"""What an export consists of: texts, by the names of the files that they belong into."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from holdfast.model.errors import InputError


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
        whole = len(self) == 1 and not folder
        places = {target if whole else target / name: text for name, text in self._files.items()}
        for place, text in places.items():
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                _write(place, text)
            except OSError as error:
                raise InputError(f"{place} cannot be written: {error.strerror}") from error
        return [*map(str, places)]


def _write(place: Path, text: str) -> None:
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", newline="\n", dir=place.parent, prefix=".", delete=False
    ) as file:
        temporary = Path(file.name)
        try:
            file.write(text)
            file.flush()
            # A temporary file is its owner's alone; this one is for whoever may read the folder.
            umask = os.umask(0)
            os.umask(umask)
            temporary.chmod(0o666 & ~umask)
            temporary.replace(place)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
