"""Databases take the constraints that are exported for them, and enforce what these say."""

from __future__ import annotations

import re
import sqlite3

import pytest

from holdfast.export import exported
from holdfast.export.contract import Column, Contract, TableContract
from holdfast.export.dialects import DIALECTS, POSTGRESQL, SQLITE
from holdfast.export.queries import Queries
from holdfast.model.constraints import Key, NotNull
from holdfast.model.errors import SchemaError
from holdfast.model.inclusion_dependencies import Attribute, ForeignKey
from tests.export.contracts import ODD_BROKEN, ODD_ROWS, odd, shop, shop_rows
from tests.export.databases import insert, postgresql, sqlite_of, statements


def script(contract: Contract, dialect: str, create: bool = True) -> str:
    """The exported SQL."""
    return str(exported(contract, "sql", dialect, create=create))


@pytest.mark.parametrize("nulls", ["equal", "unequal"])
def test_sqlite_makes_the_tables_and_takes_their_rows(nulls: str) -> None:
    contract = odd(nulls)
    database = sqlite3.connect(":memory:")
    database.execute("PRAGMA foreign_keys = ON")
    database.executescript(script(contract, "sqlite"))
    for table in reversed(contract.tables):
        insert(database, SQLITE, table.name, ODD_ROWS[table.name])
    for table in contract.tables:
        for row in ODD_BROKEN[table.name][1:]:
            with pytest.raises(sqlite3.IntegrityError):
                insert(database, SQLITE, table.name, [row])


def test_sqlite_adds_keys_to_tables_that_are_there() -> None:
    for rows, fails in ((ODD_ROWS, False), (ODD_BROKEN, True)):
        for statement in statements(script(odd(), "sqlite", create=False)):
            database = sqlite_of(odd(), SQLITE, rows)
            if fails:
                with pytest.raises(sqlite3.IntegrityError):
                    database.execute(statement)
            else:
                database.execute(statement)


def test_tables_that_refer_to_each_other_are_made() -> None:
    """One of a circle gets its reference when the other is there."""
    tables = tuple(
        TableContract(name, (Column("id", "bigint"), Column("other", "bigint")), 0,
            (NotNull(name, "id"), Key(name, ("id",))))
        for name in ("a", "b")
    )  # fmt: skip
    references = tuple(
        ForeignKey((Attribute(one, "other"),), (Attribute(two, "id"),), 1.0)
        for one, two in (("a", "b"), ("b", "a"))
    )
    circle = Contract("c", 1, "equal", "ignored", tables, references)
    made = script(circle, "postgresql")
    assert made.index('ALTER TABLE "a"') > made.index('CREATE TABLE "b"')
    assert made.count("FOREIGN KEY") == 2
    # SQLite cannot add it later, and says so.
    sqlite3.connect(":memory:").executescript(script(circle, "sqlite"))
    assert "-- a(other) in b(id): cannot be added" in script(circle, "sqlite")


def test_what_a_database_lacks_is_said() -> None:
    text = script(shop(), "databricks", create=False)
    assert "PRIMARY KEY (`order_id`, `line_no`);" in text
    assert "--   customers: key(email) (databricks has one key per table, of" in text
    assert "--   customers: city -> country\n" in text
    assert "ALTER COLUMN `order_id` SET NOT NULL;" in text
    assert "--   orders: order_id not null\n" in script(shop(), "mysql", create=False)
    nullable = script(odd(required=False), "databricks", create=False)
    assert "PRIMARY KEY" not in nullable
    assert "UNIQUE NULLS NOT DISTINCT" in script(odd(), "postgresql")
    assert "UNIQUE NULLS NOT DISTINCT" not in script(odd("unequal"), "postgresql")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_name_ends_a_comment(dialect: str) -> None:
    """Without comments and what is in quotes nothing is left of a name."""
    quote = DIALECTS[dialect].quote
    for create in (True, False):
        text = script(odd(), dialect, create)
        assert f"{quote}new\nline{quote}" in text or not create
        text = re.sub(r"^--.*$", "", text, flags=re.MULTILINE)
        text = re.sub(f"{quote}({quote}{quote}|[^{quote}])*{quote}", "", text)
        assert not re.search("DROP|line|odd|--", text)


@pytest.mark.parametrize(
    ("dialect", "name", "words"),
    [
        ("spark", "", "an empty name"),
        ("duckdb", "a\0b", "a NUL"),
        ("postgresql", "ä" * 32, "63 bytes"),
        ("mysql", "a" * 65, "64 characters"),
    ],
)
def test_a_name_that_cannot_be_written_is_refused(dialect: str, name: str, words: str) -> None:
    table = TableContract("t", (Column(name, "bigint"),), 0, (Key("t", (name,)),))
    with pytest.raises(SchemaError, match=words):
        script(Contract("c", 1, "equal", "ignored", (table,)), dialect)


def test_columns_that_are_the_same_to_a_database_are_refused() -> None:
    table = TableContract("t", (Column("a", "bigint"), Column("A", "bigint")))
    contract = Contract("c", 1, "equal", "ignored", (table,))
    with pytest.raises(SchemaError, match="the same to spark"):
        script(contract, "spark")
    assert '"A" bigint' in script(contract, "postgresql")


@pytest.mark.slow
def test_postgresql_enforces_them() -> None:
    """On a real server: the shop is made and filled, or constrained when it is full; rows that
    violate a constraint are refused; odd names are taken; and the queries run."""
    with postgresql() as server:
        for schema, create in (("made", True), ("added", False)):
            server.execute(f"CREATE SCHEMA {schema}")
            begin = f"SET search_path = {schema};\n"
            rows = "".join(_filled(name) for name in ("customers", "products", "orders"))
            rows += _filled("order_items")
            text = script(shop(), "postgresql", create)
            bare = "".join(_bare(table) for table in shop().tables)
            whole = begin + (text + rows if create else bare + rows + text)
            assert server.execute(whole) == "", schema
            assert server.execute(begin + str(exported(shop(), "queries", "postgresql"))) == ""
            for row in (
                "INSERT INTO customers SELECT * FROM customers LIMIT 1;",
                "INSERT INTO orders (order_id, customer_id) VALUES (99999, 99999);",
                "UPDATE orders SET shipped_on = ordered_on - 1;",
                "UPDATE customers SET email = NULL;",
            ):
                assert "violates" in server.execute(begin + row), row
        for nulls in ("equal", "unequal"):
            begin = f"CREATE SCHEMA odd_{nulls}; SET search_path = odd_{nulls};\n"
            assert server.execute(begin + script(odd(nulls), "postgresql")) == ""
            begin = begin.partition("; ")[2]
            asked = Queries(POSTGRESQL, odd(nulls))
            for name in reversed(list(ODD_ROWS)):
                assert server.execute(begin + _values(name, ODD_ROWS[name])) == ""
                assert "violates" in server.execute(begin + _values(name, ODD_BROKEN[name]))
            assert server.execute(begin + str(exported(odd(nulls), "queries", "postgresql"))) == ""
            # What the database does not enforce the queries find.
            drop = "".join(f"DROP TABLE {POSTGRESQL.name_of(name)} CASCADE; " for name in ODD_ROWS)
            bare = "".join(_bare(table) for table in odd().tables)
            broken = "".join(_values(name, ODD_BROKEN[name]) for name in ODD_BROKEN)
            assert server.execute(begin + drop + bare + broken) == ""
            broken_rules = [rule for rule in odd(nulls).rules if not isinstance(rule, NotNull)]
            each = "; SELECT 'next';\n".join(map(asked.of, broken_rules))
            found = server.execute(begin + each + ";").split("next\n")
            assert len(found) == len(broken_rules)
            assert all(answer.strip() for answer in found), found


def _bare(table: TableContract) -> str:
    """A statement that makes a table without constraints."""
    columns = (f"{POSTGRESQL.name_of(c.name)} {POSTGRESQL.type_of(c.type)}" for c in table.columns)
    return f"CREATE TABLE {POSTGRESQL.name_of(table.name)} ({', '.join(columns)});\n"


def _filled(table: str) -> str:
    """A statement that inserts the rows of the shop."""
    return _values(table, [tuple(row) for row in shop_rows(table)[1:]])


def _values(table: str, rows: list[tuple[object, ...]]) -> str:
    cells = (
        ", ".join(
            "NULL" if cell is None else "'" + str(cell).replace("'", "''") + "'" for cell in row
        )
        for row in rows
    )
    values = ", ".join(f"({row})" for row in cells)
    return f"INSERT INTO {POSTGRESQL.name_of(table)} VALUES {values};\n"
