"""Mappings whose values are made when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

V = TypeVar("V")


class Lazily(Mapping[str, V]):
    """Values by name, each made once, when it is first asked for: of a thousand tables a batch
    needs one.

    >>> squares = Lazily(["1", "2"], lambda name: int(name) ** 2)
    >>> squares["2"], list(squares), (squares | {"2": 5})["2"]
    (4, ['1', '2'], 5)
    """

    def __init__(self, names: Iterable[str], make: Callable[[str], V]) -> None:
        self._names = dict.fromkeys(names)
        self._make = make
        self._made: dict[str, V] = {}

    def __getitem__(self, name: str) -> V:
        if name not in self._made:
            if name not in self._names:
                raise KeyError(name)
            self._made[name] = self._make(name)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __or__(self, others: Mapping[str, V]) -> Lazily[V]:
        """The same with some other values."""
        joined = Lazily([*self._names, *others], self.__getitem__)
        joined._made.update(others)
        return joined
