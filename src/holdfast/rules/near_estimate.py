"""Which candidates may nearly hold, estimated from drawn rows.

Of a drawn row and a random row that agrees with it on X, the probability that they differ in A is
1 - pdep(X, A), so μ⁺ is estimated for all A at once by comparing drawn rows with *partners*
(:mod:`tasks.partners`). Drawn rows of one group are partners of each other in a ring, so what is
observed of them is independent in threes: by Janson's form of Bernstein's inequality ("Large
deviations for sums of partly dependent random variables", 2004) a third of them counts. How large
the group of a drawn row is depends on no other one, so of that all of them count: with c rows in a
group, (n - K)/n is what 1 - 1/c is on average. A rule that passes is missed, by chance, with a
probability below 10⁻⁶: that depends on at most twenty tests, each of which may err with a
twentieth of that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from holdfast.kernels.arrays import F64
from holdfast.model import thresholds
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Call
from holdfast.table.exchange import exchanged
from holdfast.table.placement import shares
from holdfast.table.state import Table
from holdfast.tasks import partners as tasks
from holdfast.tasks.view import View

Lhs = tuple[int, ...]

UNLIKELY = math.log(2e7)
"""The logarithm of how unlikely it is that one test errs."""

_SUMS = ("least", "most", "differing")
"""What parts of an estimate add up."""

_WANTED = 3 << 20
"""Drawn rows, times left-hand sides, that one task goes through rows for: it takes some 60 bytes
for each."""


@dataclass(frozen=True)
class Estimate:
    """What drawn rows show of some left-hand sides, one of which is empty."""

    drawn: int
    place: Mapping[Lhs, int]  # of each lhs
    least: F64  # by lhs: the shares of their groups that other rows are, added up; at least
    most: F64  # … at most
    differing: F64  # by lhs and column: drawn rows whose partner differs

    def differs(self, column: int) -> bool:
        """Whether two rows were seen that differ in a column."""
        return bool(self._by_chance(column) > 0)

    def is_near_key(self, lhs: Lhs, removal: float) -> bool | None:
        """Whether a lhs would be a key without at most such a share of the rows; None: in doubt."""
        place = self.place[lhs]
        deviation = UNLIKELY / self.drawn
        if self.least[place] / self.drawn > at_most(removal, deviation):
            return False
        if self.most[place] / self.drawn < removal - math.sqrt(2 * removal * deviation):
            return True
        return None

    def may_explain(self, lhs: Lhs, column: int, unexplained: float, removal: float) -> bool:
        """Whether at most such a share of a column may be unexplained by a lhs, beyond chance, and
        would hold without at most such a share of the rows. Of c rows, m of which agree, at most
        c - m² / c are unexplained, which is less than twice as many as would have to go."""
        place, dependent = self.place[lhs], 3 * UNLIKELY / self.drawn
        chance = truly(self._by_chance(column) / self.drawn, dependent)
        repeated = truly(self.most[place] / self.drawn, UNLIKELY / self.drawn)
        bound = min(unexplained * chance * repeated, 2 * removal, 1.0)
        return bool(self.differing[place, column] / self.drawn <= at_most(bound, dependent))

    def seems_to_explain(self, lhs: Lhs, column: int, unexplained: float) -> bool:
        """Whether no larger share of a column is unexplained, as far as rows were drawn."""
        place = self.place[lhs]
        chance, repeated = self._by_chance(column) / self.drawn, self.most[place]
        return bool(self.differing[place, column] <= unexplained * chance * repeated)

    def _by_chance(self, column: int) -> float:
        """Drawn rows that differ from a random one in a column."""
        return float(self.differing[self.place[()], column])


def at_most(share: float, deviation: float) -> float:
    """What is observed of a share that is at most so large."""
    return share + math.sqrt(2 * share * deviation) + 2 / 3 * deviation


def truly(observed: float, deviation: float) -> float:
    """How large a share can be of which so much is observed."""
    return min(1.0, observed + math.sqrt(2 * observed * deviation) + 2 * deviation)


@dataclass(frozen=True)
class Drawing:
    """Rows that were drawn from a table."""

    run: Run
    view: View
    rows: int
    files: tuple[str, ...]

    def estimated(self, lhs: Sequence[Lhs]) -> Estimate:
        """What they show of left-hand sides."""
        lhs = [(), *lhs]
        runner, root, prefix = self.run.runner, self.run.store.path, self.run.destination.prefix
        lots = max(1, -(-len(lhs) * self.rows // _WANTED))
        cuts = [len(lhs) * lot // lots for lot in range(lots + 1)]
        offers: list[Call] = [
            (
                tasks.offer_partners,
                tasks.OfferPartners(
                    share, self.files, tuple(lhs[low:high]), low, len(lhs), self.view.live, prefix
                ),
            )
            for share in shares(self.view, runner.tasks)
            for low, high in pairwise(cuts)
        ]
        everything = replace(self.view, segments=())
        with exchanged(runner, root, offers) as offered:
            files = tuple(file for names in offered for file in names)
            merges: list[Call] = [
                (
                    tasks.merge_partners,
                    tasks.MergePartners(
                        everything,
                        self.files,
                        files,
                        tuple(lhs),
                        self.view.live,
                        part,
                        runner.tasks,
                    ),
                )
                for part in range(runner.tasks)
            ]
            results = [result for answers in runner.run(merges) for result in answers]
        sums = [np.sum([each.arrays[name] for each in results], axis=0) for name in _SUMS]
        return Estimate(self.rows, {each: place for place, each in enumerate(lhs)}, *sums)


@contextmanager
def drawn(run: Run, table: Table, times: int = 1) -> Iterator[Drawing]:
    """Draw rows of a table, or so many times as many."""
    view = table.view(run.store.path, run.options)
    rows = min(times * thresholds.current.drawn_rows, view.live)
    rng = np.random.default_rng(rows)
    numbers = rng.multivariate_hypergeometric([s.live for s in view.segments], rows)
    counts = {s.number: int(n) for s, n in zip(view.segments, numbers, strict=True)}
    draws: list[Call] = [
        (
            tasks.draw_rows,
            tasks.DrawRows(
                share, tuple(counts[s.number] for s in share.segments), run.destination.prefix
            ),
        )
        for share in shares(view, run.runner.tasks)
    ]
    with exchanged(run.runner, run.store.path, draws) as files:
        yield Drawing(run, view, rows, tuple(file for names in files for file in names))
