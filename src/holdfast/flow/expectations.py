"""Declaring what is expected of the rows, and forgetting it: a version without a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from holdfast.flow.commits import publish
from holdfast.flow.near import forms_listed
from holdfast.input.row_input import Columns
from holdfast.kinds import registry
from holdfast.model.commits import Commit
from holdfast.model.errors import HoldfastError, InputError
from holdfast.model.expectations import Expectation, ExpectationChange, Standing, named
from holdfast.model.progress import Progress
from holdfast.rules.expectations import Expected
from holdfast.runtime.run import Run, watched
from holdfast.runtime.runner import Runner
from holdfast.screen.text import count
from holdfast.store import Lease, Store
from holdfast.table.state import Table


def canonicals(
    version: Commit, wanted: Sequence[Expectation], where: Sequence[str] = ()
) -> list[Expectation]:
    """Expectations whose rules are written in one way; what the tables cannot have, and a rule that
    is there twice, is an error that names ``where`` it comes from, if that is given."""
    columns = {name: Columns.stored(table.columns) for name, table in version.tables.items()}
    by_rule: dict[str, Expectation] = {}
    for place, each in enumerate(wanted):
        label = f"{where[place]}: " if where else ""
        try:
            rule = registry.canonical(each.rule, columns)
        except HoldfastError as error:
            raise type(error)(f"{label}{error}") from error
        if rule in by_rule:
            raise InputError(f"{label}{rule}: this rule is declared twice")
        by_rule[rule] = replace(each, rule=rule)
        try:
            registry.form(by_rule[rule], columns, version.options)
        except HoldfastError as error:
            raise type(error)(f"{label}{error}") from error
    return list(by_rule.values())


def joined(standings: Sequence[Standing], wanted: Sequence[Expectation]) -> list[Expectation]:
    """What is expected with more, or with other settings of the same rules."""
    by_rule = {standing.rule: standing.expectation for standing in standings}
    by_rule |= {expectation.rule: expectation for expectation in wanted}
    names: dict[str, str] = {}
    for each in by_rule.values():
        if each.name is not None and names.setdefault(each.name, each.rule) != each.rule:
            raise InputError(
                f"the name {each.name!r} is given to two rules: {names[each.name]} and {each.rule}"
            )
    return list(by_rule.values())


def expected(
    store: Store, wanted: Sequence[Expectation], where: Sequence[str] = ()
) -> list[Expectation]:
    """What would be expected with these rules, too: what is wrong with them is reported without a
    runner."""
    version = store.read()
    return joined(version.expectations, canonicals(version, wanted, where))


def expect(
    runner: Runner, store: Store, wanted: Sequence[Expectation], progress: Progress
) -> list[ExpectationChange]:
    """Expect these rules from now on, too; how they stand, with rows that violate them."""
    with (
        store.writing() as lease,
        watched(runner, store, lease, progress) as (runner, progress),
    ):
        version = store.read(lease.version)
        wanted = canonicals(version, wanted)
        every = joined(version.expectations, wanted)
        tables = {name: Table.stored(name, each) for name, each in version.tables.items()}
        run = Run(runner, store, version.options, lease, progress)
        before = _expected(version, tables)
        forms = registry.forms(every, tables, run.options)
        after = before.declare(run, every, forms, tables, forms_listed(version, tables))
        question = after.question(run, tables)
        rules = {expectation.rule for expectation in wanted}
        changes = [
            ExpectationChange(
                None, standing, () if standing.holds else tuple(after.groups(question, place))
            )
            for place, standing in enumerate(after.standings)
            if standing.rule in rules
        ]
        if before.expectations != every:
            _commit(store, lease, version, after, f"{count(len(wanted), 'rule')} expected")
    store.clean()
    return changes


def forget(store: Store, asked: str) -> Expectation:
    """Expect a rule no more, by its name or by itself; which it was. Its tuples stay in the files
    until nothing else is counted."""
    with store.writing() as lease:
        version = store.read(lease.version)
        gone = named(version.expectations, asked, _rule(version, asked))
        tables = {name: Table.stored(name, each) for name, each in version.tables.items()}
        after = _expected(version, tables).without(gone.rule, forms_listed(version, tables))
        _commit(store, lease, version, after, "1 rule forgotten")
    store.clean()
    return gone.expectation


def _expected(version: Commit, tables: Mapping[str, Table]) -> Expected:
    """The expectations of a version."""
    expectations = [standing.expectation for standing in version.expectations]
    return Expected.stored(version, registry.forms(expectations, tables, version.options))


def _rule(version: Commit, asked: str) -> str | None:
    """A text as a rule in its one form; None: it is a name, or nothing."""
    try:
        return canonicals(version, [Expectation(asked)])[0].rule
    except HoldfastError:
        return None


def _commit(store: Store, lease: Lease, version: Commit, after: Expected, event: str) -> None:
    publish(
        store,
        lease,
        replace(
            version,
            batch=None,
            changes=None,
            seconds={},
            values_seconds={},
            expectations=after.standings,
            tuples=after.counts.stored,
            event=event,
        ),
    )
