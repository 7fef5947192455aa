"""What can be said of one rule: counted in the rows, read from all versions, and near ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from holdfast.kinds import registry
from holdfast.model.explanation import EXAMPLE_ROWS, Explanation, masked
from holdfast.model.grammar import Rule
from holdfast.model.lazily import Lazily
from holdfast.model.near import NearRule
from holdfast.model.progress import Progress
from holdfast.rules.history import LOOKED_BACK, pasts
from holdfast.rules.question import Question
from holdfast.rules.version import Version
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Runner
from holdfast.store import Store
from holdfast.table.state import Table
from holdfast.tasks.groups import ExampleLimits


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
    with store.asking() as lease:
        version = Version(store, store.read(lease.version))
        commit = version.commit
        tables = Lazily(commit.tables, lambda name: Table.stored(name, commit.tables[name]))
        columns = Lazily(tables, lambda name: tables[name].columns)
        rule = examiner.checked(rule, columns)
        form = examiner.form(rule, columns, commit.options)
        question = Question(Run(running(), store, commit.options, lease, progress), tables)
        with question.files:
            progress("search", table=form.table)
            violations = form.measure(question, ExampleLimits(max(1, limit), EXAMPLE_ROWS))
            holds = not violations.any
            tested = form.tested(question, violations) if holds else None
            nearby = examiner.nearby(question, version, rule, holds)
        examples = violations.examples[:limit]
        examples = masked(examples) if mask else examples
        found = violations.found and (violations.found.masked if mask else violations.found)
        violations = replace(violations, examples=examples, tested=tested, found=found)
        [past] = pasts(store, lease.version, [(examiner, rule)])
        same, apart = examiner.cells(rule)
        record = commit.table(form.table)
        near = None if record.near is None else record.near.named(rule)
        since = None if near is None else _listed_since(store, commit.version, near)
        return Explanation(
            rule, examiner.kind, form.table, commit.version, holds, record.rows, violations, past,
            nearby, same, apart, examiner.unit, examiner.names_rows(rule), near, since,
        )  # fmt: skip


def _listed_since(store: Store, version: int, near: NearRule) -> int:
    """From which version on a rule is listed among those that nearly hold."""
    last = max(store.first() - 1, version - LOOKED_BACK)
    for before in range(version - 1, last, -1):
        tables = store.read(before).tables
        kept = tables[near.table].near if near.table in tables else None
        if kept is None or kept.named(near.rule) is None:
            return before + 1
    return max(store.first(), version - LOOKED_BACK)
