"""What is exported for Spark is read by Spark, and finds what Holdfast finds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from holdfast import Options, Profile
from holdfast.export import contract_of, exported
from holdfast.export.contract import Column, Contract, TableContract
from holdfast.export.dialects import SPARK
from holdfast.export.queries import Queries
from holdfast.model.constraints import FunctionalDependency, Key
from holdfast.model.grammar import parse
from tests.export.brute import violations
from tests.export.contracts import odd, shop
from tests.export.databases import statements

pytestmark = pytest.mark.spark

NAMES = ("a b", "c`d", "order", "day")
TYPES = ("bigint", "double", "string", "date")
SCHEMA = "`a b` bigint, `c``d` double, `order` string, day date"
NAN = float("nan")
ROWS: list[tuple[Any, ...]] = [
    (1, 1.5, "x", None),
    (1, NAN, "x", None),
    (2, NAN, None, None),
    (2, -0.0, None, None),
    (None, 0.0, "y", None),
    (None, 0.0, "y", None),
    (3, None, "y", None),
]
RULES = (
    "t: key(`a b`)",
    "t: key(`a b`, `c``d`)",
    "t: key(`order`, day)",
    "t: key()",
    "t: `a b` -> `order`",
    "t: `c``d` -> `a b`",
    "t: {} -> day",
    "t: `order` -> `c``d`",
    "t: not (t.`a b` <= s.`a b` and t.`c``d` > s.`c``d`)",
    "t: not (t.`a b` = s.`a b` and t.`order` != s.`order`)",
    "t: not (t.`a b` <= s.`a b` and t.`order` = s.`order` and t.`c``d` >= s.`c``d`)",
    "t: not (t.`c``d` != s.`c``d` and t.`a b` >= s.`a b`)",
    "t: not (t.`a b` > t.`c``d`)",
)


def shown(cells: Any) -> tuple[str, ...]:
    """Cells so that equal ones print alike: -0.0 and 0.0, two NaN, 1 and 1.0."""
    return tuple(str(cell + 0.0) if isinstance(cell, int | float) else str(cell) for cell in cells)


@pytest.mark.parametrize("nulls", ["equal", "unequal"])
def test_queries_find_what_violates_a_rule(
    nulls: str, spark: SparkSession, frame: Callable[..., DataFrame]
) -> None:
    frame(SCHEMA, *ROWS).createOrReplaceTempView("t")
    table = TableContract("t", tuple(map(Column, NAMES, TYPES)))
    queries = Queries(SPARK, Contract("p", 1, nulls, "ignored", (table,)))
    # All of them in one job, each row as text.
    asked = " UNION ALL ".join(
        f"SELECT {place} AS place, to_json(struct(*)) AS row FROM ({queries.of(parse(text))})"
        for place, text in enumerate(RULES)
    )
    found: dict[int, list[str]] = {place: [] for place in range(len(RULES))}
    for row in spark.sql(asked).collect():
        found[row.place].append(row.row)
    for place, text in enumerate(RULES):
        rule = parse(text)
        expected = {shown(each) for each in violations(rule, ROWS, NAMES, nulls)}
        assert len(set(found[place])) == len(expected), text


def test_queries_find_what_holdfast_finds(
    spark: SparkSession, frame: Callable[..., DataFrame], tmp_path: Path
) -> None:
    rows = frame(SCHEMA, *ROWS)
    rows.createOrReplaceTempView("t")
    options = Options(kinds=("keys", "fds"), nulls="unequal")
    profile = Profile.create(tmp_path / "p", {"t": rows}, options=options, session=spark)
    queries = Queries(SPARK, contract_of(profile.snapshot(), "p"))
    for text in (RULES[0], RULES[7], RULES[10]):
        rule = parse(text)
        columns: tuple[str, ...] = NAMES[:3]
        rows_shown = 2
        if isinstance(rule, Key):
            columns, rows_shown = rule.columns, 1
        elif isinstance(rule, FunctionalDependency):
            columns, rows_shown = rule.lhs, 1
        pairs = [
            tuple(row[c] for row in pair[:rows_shown] for c in columns)
            for pair in profile.violations(text, 100)
        ]
        answer = spark.sql(queries.of(rule)).collect()
        width = len(pairs[0])
        assert {shown(row[:width]) for row in answer} == {
            tuple("nan" if cell == "NaN" else cell for cell in shown(pair)) for pair in pairs
        }


@pytest.mark.parametrize("create", [True, False])
def test_spark_reads_the_statements(spark: SparkSession, create: bool) -> None:
    """Its own catalog keeps no constraints, which it says when it has read them."""
    for made in (shop(), odd(), odd("unequal", required=False)):
        for dialect in ("spark", "databricks"):
            text = str(exported(made, "sql", dialect, create=create))
            for statement in statements(text):
                assert statement.startswith(("CREATE TABLE", "ALTER TABLE"))
                try:
                    spark.sql(f"EXPLAIN {statement}").collect()
                except ParseException as error:
                    raise AssertionError(statement) from error
                except AnalysisException:
                    pass
