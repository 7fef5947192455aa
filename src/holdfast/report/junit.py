"""What a batch breaks as a test report in JUnit's XML, which continuous integration shows.

A rule that is expected is a test case, and so is a kind of constraint that counts for the exit
code. What breaks and does not count is skipped, with what it would have said.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from xml.etree import ElementTree

from holdfast.kinds import registry
from holdfast.model.changes import BatchChanges, Changes, KindChanges
from holdfast.report.standing import how_far
from holdfast.report.terminal.batch import batch_text
from holdfast.report.terminal.expectation import expectation_changes
from holdfast.report.terminal.kinds import kind_changes
from holdfast.screen.page import Page
from holdfast.screen.text import count


@dataclass(frozen=True)
class _Case:
    """A test case: it passes where there is no message."""

    name: str
    message: str = ""
    counts: bool = False  # for the exit code
    text: str = ""


def junit(outcome: Changes | BatchChanges, gating: Collection[str], *, check: bool = False) -> str:
    """The report of a batch, with a suite for each table. ``gating`` are the kinds of constraints,
    by their JSON names, that count for the exit code."""
    seconds = sum(outcome.seconds.values())
    root = ElementTree.Element("testsuites", {"name": "holdfast", "time": f"{seconds:.3f}"})
    for table, changes in outcome.by_table.items():
        cases = [*_cases(changes, gating, check or changes.refused)]
        failing = [case for case in cases if case.message and case.counts]
        skipped = [case for case in cases if case.message and not case.counts]
        sizes = {"tests": cases, "failures": failing, "errors": [], "skipped": skipped}
        suite = ElementTree.SubElement(root, "testsuite", {"name": _xml(table)})
        suite.attrib |= {name: str(len(some)) for name, some in sizes.items()}
        for case in cases:
            names = {"classname": _xml(table), "name": _xml(case.name)}
            element = ElementTree.SubElement(suite, "testcase", names)
            if case.message:
                what = "failure" if case.counts else "skipped"
                told = ElementTree.SubElement(element, what, {"message": _xml(case.message)})
                told.text = _xml(case.text)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _cases(changes: Changes, gating: Collection[str], check: bool) -> Iterator[_Case]:
    """The test cases of a table; of nothing to test there is one about the rows."""
    if changes.applied_before:
        version = changes.version
        yield _Case(f"batch {changes.batch_id}", f"was applied before, as version {version}")
        return
    some = [*_expectations(changes, check), *_kinds(changes, gating, check)]
    yield from some or [_Case(batch_text(changes))]


def _expectations(changes: Changes, check: bool) -> Iterator[_Case]:
    """The rules that are expected; one that a batch leaves broken does not count."""
    for each in changes.expectations or ():
        name = each.after.expectation.label
        if each.after.holds:
            yield _Case(name)
            continue
        message = how_far(each.after)
        if not each.breaks:
            message += "; it did not hold before, and this batch adds nothing to that"
        told = _written(partial(expectation_changes, rules=[each], check=check))
        yield _Case(name, message, each.stops, told)


def _kinds(changes: Changes, gating: Collection[str], check: bool) -> Iterator[_Case]:
    """The kinds of constraints that count, and those of which some break."""
    verb = "would break" if check else "broken"
    for kind in registry.named_in(changes.kinds):
        of_kind = changes.kinds[kind.field]
        number = of_kind.counts["broken"]
        if number:
            broken = KindChanges(broken=of_kind.broken, counts={"broken": number})
            told = _written(
                partial(kind_changes, kind=kind, changes=broken, check=check, verbose=True)
            )
            message = f"{count(number, *kind.nouns)} {verb}"
            yield _Case(kind.nouns[1], message, kind.field in gating, told)
        elif kind.field in gating:
            yield _Case(kind.nouns[1])


def _written(write: Callable[[Page], None]) -> str:
    """What is written on a page."""
    stream = io.StringIO()
    write(Page(stream))
    return "\n" + stream.getvalue()


def _xml(text: str) -> str:
    r"""Text without the characters that XML has no way to write.

    >>> _xml("a\x00b\n<c>")
    'a\\x00b\n<c>'
    """
    return "".join(
        c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text
    )
