"""Which candidates may nearly hold, estimated from drawn rows.

Of a drawn row and a random row that agrees with it on X, the probability that they differ in A is
1 - pdep(X, A), so μ⁺ is estimated for all A at once by comparing drawn rows with *partners*
(:mod:`tasks.partners`). Drawn rows of one group are partners of each other in a ring, so what is
observed of them is independent in threes: by Janson's form of Bernstein's inequality ("Large
deviations for sums of partly dependent random variables", 2004) a third of them counts. A bound is
missed by chance with a probability below 10⁻⁶: each test below may err with a third of that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels.arrays import I64
from holdfast.model import thresholds
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Call
from holdfast.table.exchange import exchanged
from holdfast.table.placement import shares
from holdfast.table.state import Table
from holdfast.tasks import partners as tasks

_UNLIKELY = math.log(3e6)
"""The logarithm of how unlikely it is that one test errs."""


@dataclass(frozen=True)
class Estimate:
    """What drawn rows show of some left-hand sides, the first of which is empty."""

    drawn: int
    shared: I64  # by lhs: drawn rows that are not alone in their group
    differing: NDArray[np.float64]  # by lhs and column: drawn rows whose partner differs

    def differs(self, column: int) -> bool:
        """Whether two rows were seen that differ in a column."""
        return bool(self.differing[0, column] > 0)

    def may_share(self, place: int, share: float) -> bool:
        """Whether at most such a share of the rows may lie in groups of two and more."""
        return bool(self.shared[place] / self.drawn <= self._at_most(share))

    def may_explain(self, place: int, column: int, unexplained: float) -> bool:
        """Whether at most such a share of a column may be unexplained by a lhs, beyond chance."""
        chance = self._true(self.differing[0, column]) * self._true(self.shared[place])
        observed = self.differing[place, column] / self.drawn
        return bool(observed <= self._at_most(min(1.0, unexplained * chance)))

    @property
    def _independent(self) -> float:
        return self.drawn / 3

    def _at_most(self, share: float) -> float:
        """What is observed of a share that is at most so large."""
        deviation = _UNLIKELY / self._independent
        return share + math.sqrt(2 * share * deviation) + 2 / 3 * deviation

    def _true(self, number: float) -> float:
        """How large a share can be of which so many drawn rows are observed."""
        observed, deviation = number / self.drawn, _UNLIKELY / self._independent
        return min(1.0, observed + math.sqrt(2 * observed * deviation) + 2 * deviation)


def estimated(run: Run, table: Table, lhs: Sequence[tuple[int, ...]]) -> Estimate:
    """What drawn rows of a table show of left-hand sides, the first of which is empty."""
    runner, root, prefix = run.runner, run.store.path, run.destination.prefix
    view = table.view(root, run.options)
    dealt = shares(view, runner.tasks)
    drawn = min(thresholds.current.drawn_rows, view.live)
    rng = np.random.default_rng(drawn)
    numbers = rng.multivariate_hypergeometric([s.live for s in view.segments], drawn)
    counts = {s.number: int(n) for s, n in zip(view.segments, numbers, strict=True)}
    draws: list[Call] = [
        (
            tasks.draw_rows,
            tasks.DrawRows(share, tuple(counts[s.number] for s in share.segments), prefix),
        )
        for share in dealt
    ]
    columns = len(table.columns.names)
    with exchanged(runner, root, draws) as drawn_files:
        files = tuple(file for names in drawn_files for file in names)
        offers: list[Call] = [
            (
                tasks.offer_partners,
                tasks.OfferPartners(share, files, tuple(lhs), prefix, place == 0),
            )
            for place, share in enumerate(dealt)
        ]
        with exchanged(runner, root, offers) as offered:
            files = tuple(file for names in offered for file in names)
            merges: list[Call] = [
                (
                    tasks.merge_partners,
                    tasks.MergePartners(root, files, columns, len(lhs), drawn, part, runner.tasks),
                )
                for part in range(runner.tasks)
            ]
            results = [result for answers in runner.run(merges) for result in answers]
    shared = np.sum([each.arrays["shared"] for each in results], axis=0)
    differing = np.sum([each.arrays["differing"] for each in results], axis=0)
    return Estimate(drawn, shared, differing)
