"""The cells that break rules which nearly hold, in the rows of the current version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from heapq import merge
from itertools import islice

from holdfast.flow.near import forms_of, stored_tables, suspecting
from holdfast.kinds.ranking import ranked
from holdfast.model.grammar import Rule
from holdfast.model.near import NearRule, Suspect, Suspects, has_suspects
from holdfast.model.progress import Progress
from holdfast.report.snapshot import Snapshot, snapshot
from holdfast.rules.question import Question
from holdfast.rules.suspects import suspected
from holdfast.runtime.run import Run, about
from holdfast.runtime.runner import Runner
from holdfast.store import Store


@dataclass(frozen=True)
class Asked:
    """Whose cells are asked for: those that a rule suspects, or else all near rules of some
    tables; at most so many; in a version whose rows are there."""

    rule: Rule | None
    tables: Sequence[str]
    limit: int | None
    version: int | None = None  # None: the last one


def suspects(runner: Runner, store: Store, asked: Asked, progress: Progress) -> Suspects:
    """The cells, the highest scores first."""
    with streamed(runner, store, asked, progress) as (found, cells):
        return Suspects(found.near, tuple(cells), found.total, found.groups)


@contextmanager
def streamed(
    runner: Runner, store: Store, asked: Asked, progress: Progress
) -> Iterator[tuple[Suspects, Iterator[Suspect]]]:
    """The same with the cells one after the other, of which any number can be read in the block."""
    names = asked.tables if asked.rule is None else [asked.rule.tables[0]]
    with store.asking(asked.version) as lease, ExitStack() as stack:
        version, now = store.read(lease.version), snapshot(store, lease.version)
        tables = stored_tables(version)
        near: list[NearRule] = []
        found = []
        for name in names:
            run = Run(runner, store, version.options, lease, about(progress, name))
            if asked.rule is None:
                rules = {each.rule: each for each in _suspecting(now, name)}
                forms = forms_of(rules.values(), tables, version.options)
                own = {rules[rule]: form for rule, form in forms.items() if has_suspects(rule)}
            else:
                rule, form = suspecting(version, asked.rule)
                own = {form.measured(rule, Question(run, tables)): form}
            cells = suspected(run, tables, own, _row_key(now, name), asked.limit)
            found.append(stack.enter_context(cells))
            near += own
        total, groups = (sum(getattr(each, n) for each in found) for n in ("total", "groups"))
        merged = merge(*(each.cells for each in found), key=lambda cell: -cell.score)
        yield Suspects(tuple(near), (), total, groups), islice(merged, asked.limit)


def _suspecting(now: Snapshot, name: str) -> tuple[NearRule, ...]:
    """The near rules of a table, listed or not."""
    near = now.tables[name].near
    return near.near if near else ()


def _row_key(now: Snapshot, name: str) -> tuple[str, ...]:
    """The columns that tell rows of a table apart, as far as they do."""
    key = ranked(now, [name])[name].grain.key
    return () if key is None else key.columns
