"""Verifying a profile: its files against each other, and all it says against the rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from holdfast.evidence import pairs
from holdfast.evidence.verify import evidence_differences
from holdfast.flow.near import forms_listed, forms_of
from holdfast.flow.profile import by_table, tables_and_keys
from holdfast.kinds import registry
from holdfast.kinds.table_state import TableState
from holdfast.model.commits import Commit, Header
from holdfast.model.near import NearRule
from holdfast.model.progress import Progress
from holdfast.model.versions import Verification
from holdfast.rules.expectations import Expected
from holdfast.rules.near_kept import NearState
from holdfast.runtime.result import error_of
from holdfast.runtime.run import Run, about, watched
from holdfast.runtime.runner import Runner
from holdfast.runtime.sealed import seal_of, together
from holdfast.store import Store
from holdfast.store.files import is_kept
from holdfast.table import columns
from holdfast.table.placement import shares
from holdfast.table.state import Table
from holdfast.tasks import check as check_tasks
from holdfast.values.state import ValueState
from holdfast.values.tuples import TupleCounts


def verify(runner: Runner, store: Store, progress: Progress) -> Verification:
    """Profile the current rows from scratch and compare."""
    with (
        store.trying() as lease,
        watched(runner, store, lease, progress) as (runner, progress),
    ):
        version = store.read(lease.version)
        _verify_files(runner, store, version)
        # However long the search takes: it goes as far as what it is compared with.
        options = replace(version.options, time_budget=None)
        states = {name: TableState.load(store, version, name) for name in version.tables}
        tables = {name: state.table for name, state in states.items()}

        def verify_table(runner: Runner, name: str) -> list[str]:
            run = Run(runner, store, options, lease, about(progress, name))
            return list(_verify_table(run, states[name]))

        differences = by_table(runner, states, verify_table, options)
        if version.inclusion and not any(differences.values()):
            run = Run(runner, store, options, lease, progress)
            values = ValueState.load(store, version.inclusion)
            for name, sentence in values.compare(run, *tables_and_keys(options, states)):
                differences[name].append(sentence)
        if version.expectations and not any(differences.values()):
            run = Run(runner, store, options, lease, progress)
            expectations = [standing.expectation for standing in version.expectations]
            forms = registry.forms(expectations, tables, options)
            for name, sentence in Expected.stored(version, forms).compare(run, tables):
                differences[name].append(sentence)
        if _lists_near(version) and not any(differences.values()):
            run = Run(runner, store, options, lease, progress)
            for name, sentence in _near_differences(run, version, tables):
                differences[name].append(sentence)
    sentences = {name: tuple(lines) for name, lines in differences.items()}
    return Verification(version.version, sentences)


def _lists_near(version: Commit) -> bool:
    return any(record.near and record.near.rules for record in version.tables.values())


def _near_differences(
    run: Run, version: Commit, tables: Mapping[str, Table]
) -> Iterator[tuple[str, str]]:
    """Where rows break a listed near rule that are not counted, or the other way round: the table,
    and a sentence about it. What could be listed besides is not looked for."""
    counts = TupleCounts().declare(run, forms_listed(version, tables), tables)
    for name, record in version.tables.items():
        if record.near is None:
            continue
        forms = forms_of(record.near.rules, tables, version.options)
        stored = NearState.of(record.near, forms)
        fresh = stored.recounted(run, counts, tables, None)
        for old, new in zip(stored.near.rules, fresh.near.rules, strict=True):
            if old != new:
                yield (
                    name,
                    f"the profile says that the rule {old.rule} nearly holds ({_near(old)}), "
                    f"but by the rows it is {_near(new)}",
                )


def _near(rule: NearRule) -> str:
    strength = "" if rule.strength is None else f", strength {rule.strength}"
    return f"{rule.removal:,} of {rule.of_rows:,} rows would have to go{strength}"


def _verify_files(runner: Runner, store: Store, version: Header) -> None:
    """Check every data file that a version names, in one job, and those that stay of the versions
    before it; an error that names all that are damaged, because what else would be found comes
    from them."""
    names = sorted(store.files(version.version))
    piles: list[list[str]] = [[] for _ in range(max(1, min(runner.tasks, len(names))))]
    for name in sorted(names, key=lambda each: -_size(each)):
        min(piles, key=lambda pile: sum(map(_size, pile))).append(name)
    calls = [(check_tasks.check_files, check_tasks.Files(store.path, tuple(p))) for p in piles]
    task_results = [task_result for result in runner.run(calls) for task_result in result]
    wrong = [
        error_of(facts) for task_result in task_results for facts in task_result.facts["wrong"]
    ]
    versions = range(store.first(), version.version)
    earlier = {name for old in versions for name in store.files(old) if is_kept(name)}
    wrong += store.damaged(sorted(earlier.difference(names)))
    if wrong:
        raise together(wrong)


def _size(name: str) -> int:
    seal = seal_of(name)
    return seal.size if seal else 0


def _verify_table(run: Run, state: TableState) -> Iterator[str]:
    table = state.table
    view = table.view(run.store.path, run.options)
    run.progress("verify", rows=table.rows)
    calls = [
        (check_tasks.check, check_tasks.Check(share, table.columns.schema))
        for share in shares(view, run.runner.tasks)
    ]
    task_results = [task_result for result in run.runner.run(calls) for task_result in result]
    wrong = [line for task_result in task_results for line in task_result.facts["wrong"]]
    if wrong:
        # What else would be found comes from damaged files.
        yield from wrong
        return
    yield from columns.differences(table, task_results, run.options.keep_rows)
    if not state.evidence:
        return
    fresh, fresh_table = pairs.rediscover(run, table, state.evidence)
    for name, evidence in state.evidence.items():
        yield from evidence_differences(run, view, table.columns.names, evidence, fresh[name])
    if table.duplicates != fresh_table.duplicates:
        yield (
            f"the profile counts {table.duplicates} repeated rows, "
            f"but there are {fresh_table.duplicates}"
        )
