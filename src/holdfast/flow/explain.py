"""What can be said of one rule: counted in the rows, read from all versions, and near ones."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

from holdfast.input.row_input import Columns
from holdfast.kinds import registry
from holdfast.kinds.past import pasts
from holdfast.kinds.question import Question
from holdfast.model.explanation import EXAMPLE_ROWS, Explanation, masked
from holdfast.model.grammar import Rule
from holdfast.model.lazily import Lazily
from holdfast.model.progress import Progress
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Runner
from holdfast.store import Store
from holdfast.tasks.examine import Shown


def explain(
    running: Callable[[], Runner],
    store: Store,
    rule: Rule,
    limit: int,
    progress: Progress,
    mask: bool = False,
) -> Explanation:
    """Everything about a rule, in the current version; with ``mask``, without values."""
    examiner = registry.examiner(rule)
    with store.asking() as lease, ExitStack() as held:
        commit = store.read(lease.version)
        columns = Lazily(commit.tables, lambda name: Columns.stored(commit.tables[name].columns))
        rule = examiner.checked(rule, columns)
        tables = rule.tables
        run = Run(running(), store, commit.options, lease, progress)
        # Where pairs are too many to be counted, an example is what shows that there are any.
        question = Question(run, commit, Shown(max(1, limit), EXAMPLE_ROWS), held)
        progress("search", table=tables[0])
        violations = examiner.violations(question, rule)
        holds = not (violations.examples or violations.rows or violations.pairs)
        tested = examiner.tested(question, rule, violations) if holds else None
        examples = violations.examples[:limit]
        examples = masked(examples) if mask else examples
        violations = replace(violations, examples=examples, tested=tested)
        nearby = examiner.nearby(question, rule, holds)
        [past] = pasts(store, lease.version, [(examiner, rule)])
        same, apart = examiner.cells(rule)
        rows = commit.table(tables[0]).rows
        return Explanation(
            rule, examiner.kind, tables[0], commit.version, holds, rows, violations, past, nearby,
            same, apart, examiner.unit, examiner.names_rows(rule),
        )  # fmt: skip
