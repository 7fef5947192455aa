"""How databases write names, types and comparisons."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from holdfast.export.contract import Contract, TableContract
from holdfast.export.patterns import spelled_out
from holdfast.model.errors import InputError, SchemaError
from holdfast.model.precision import in_microseconds
from holdfast.screen.text import plain


@dataclass(frozen=True)
class Dialect:
    """One way to write SQL."""

    name: str
    version: str  # the first that reads all of it
    quote: str = '"'
    same: str = "{} IS NOT DISTINCT FROM {}"  # equal, or both null
    different: str = "{} IS DISTINCT FROM {}"
    longest: int | None = None  # name, in bytes or characters
    in_bytes: bool = False
    folds_case: bool = True  # whether two columns whose names differ only in case are the same
    alters: bool = True  # whether constraints can be added to a table that is there; else indexes
    unique: str | None = "UNIQUE"  # a key whose nulls differ; None: it has no such constraint
    unique_nulls: str | None = None  # a key whose nulls are equal; None: it has no such constraint
    sets_not_null: bool = True  # whether a column that is there can be told to have no nulls
    informational: str = ""  # what follows a key or a foreign key that is not enforced
    types: Mapping[str, str] = field(default_factory=dict)  # by Spark's words, without parameters
    key_text: str | None = None  # the type of text in keys, where another one is needed
    other: str = "text"  # the type of everything else: nested values, intervals and so on
    table_options: str = ""
    escapes: bool = False  # whether a backslash in a text escapes what follows
    matches: str = "{column} ~ {pattern}"  # a text that a pattern matches
    whole: str = r"\A(?:{})\z"  # a pattern of whole texts
    checks_patterns: bool = True  # whether a constraint can say so
    zoned: bool = True  # whether it has instants; else times are written as in UTC
    now: str = "now() AT TIME ZONE 'UTC'"  # the time in UTC, without a zone
    instant: str = "now()"  # with one
    ago: str = "({now}) - INTERVAL '{seconds} seconds'"  # some time before
    day: str = "CAST({} AS date)"  # of such a time

    def name_of(self, name: str) -> str:
        """The name of a table or column in quotes.

        >>> POSTGRESQL.name_of('a"b'), SPARK.name_of("a`b")
        ('"a""b"', '`a``b`')
        """
        if not name or "\0" in name:
            what = "an empty name" if not name else f"{plain(name)!r}, which has a NUL in it"
            raise SchemaError(f"{self.name} has no way to write {what}; rename the column or table")
        size = len(name.encode()) if self.in_bytes else len(name)
        if self.longest is not None and size > self.longest:
            unit = "bytes" if self.in_bytes else "characters"
            raise SchemaError(
                f"the name {plain(name)!r} is longer than the {self.longest} {unit} that "
                f"{self.name} takes; rename the column or table"
            )
        return self.quote + name.replace(self.quote, 2 * self.quote) + self.quote

    def table_of(self, contract: Contract, name: str) -> str:
        """A table with the schema that it is in."""
        return ".".join(map(self.name_of, (*contract.namespace, name)))

    def names(self, names: Iterable[str]) -> str:
        """Several names, with commas."""
        return ", ".join(map(self.name_of, names))

    def type_of(self, spark: str, *, in_key: bool = False) -> str:
        """The type for one of Spark's.

        >>> POSTGRESQL.type_of("timestamp_ntz"), MYSQL.type_of("string", in_key=True)
        ('timestamp', 'varchar(255)')
        >>> DUCKDB.type_of("decimal(12,2)"), POSTGRESQL.type_of("array<int>")
        ('decimal(12,2)', 'jsonb')
        >>> DUCKDB.type_of("timestamp_ntz(9)"), SPARK.type_of("timestamp_ntz(9)")
        ('timestamp_ns', 'timestamp_ntz')
        >>> POSTGRESQL.type_of("varchar(10)"), SQLITE.type_of("interval day to second")
        ('text', 'text')
        """
        if self.quote == "`" and not self.types:
            return in_microseconds(spark)
        base, _, parameters = spark.partition("(")
        base = {"char": "string", "varchar": "string"}.get(base, base.partition(" ")[0])
        if in_key and self.key_text is not None and base in ("string", "binary"):
            return self.key_text if base == "string" else "varbinary(255)"
        if "<" in spark or base not in self.types:
            return self.other
        known = self.types.get(spark, self.types[base])
        return f"{known}({parameters}" if parameters and base == "decimal" else known

    def satisfied(self, left: str, op: str, right: str, nulls: str) -> str:
        """A predicate of denial constraints: true where two cells satisfy it, else false or null.

        >>> POSTGRESQL.satisfied("a", "<=", "b", "equal")
        '(a <= b OR (a IS NULL AND b IS NULL))'
        >>> SPARK.satisfied("a", "!=", "b", "equal")
        'NOT (a <=> b)'
        """
        if op == "!=" and nulls == "unequal":
            return f"({left} <> {right} OR {left} IS NULL OR {right} IS NULL)"
        if op == "!=":
            return self.different.format(left, right)
        if op == "=" and nulls == "equal":
            return self.same.format(left, right)
        if op in ("<=", ">=") and nulls == "equal":
            return f"({left} {op} {right} OR ({left} IS NULL AND {right} IS NULL))"
        return f"{left} {op} {right}"

    def text_of(self, text: str) -> str:
        """A text in quotes.

        >>> POSTGRESQL.text_of("O'Neill"), SPARK.text_of("O'Neill")
        ("'O''Neill'", "'O\\\\'Neill'")
        """
        if "\0" in text:
            raise SchemaError(
                f"{self.name} has no way to write {plain(text)!r}, which has a NUL in it"
            )
        if self.escapes:
            return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
        return "'" + text.replace("'", "''") + "'"

    def value_of(self, type_: str, value: str, spark: str) -> str:
        """A literal of a rule, for a column of one of Spark's types.

        >>> POSTGRESQL.value_of("text", "2026-11-15", "date")
        "CAST('2026-11-15' AS date)"
        >>> POSTGRESQL.value_of("number", "0.1", "float"), POSTGRESQL.value_of("number", "7", "int")
        ('0.10000000149011612', '7')
        """
        base = spark.partition("(")[0]
        if base in ("float", "double"):
            number = float(value)
            # A column of single precision is compared as one of doubles.
            return repr(
                struct.unpack("f", struct.pack("f", number))[0] if base == "float" else number
            )
        if type_ != "text":
            return value.upper()
        if base in ("string", "char", "varchar"):
            return self.text_of(value)
        moment = value.removesuffix("Z") + ("+00:00" if self.zoned and value.endswith("Z") else "")
        return f"CAST({self.text_of(moment)} AS {self.type_of(spark)})"

    def before_now(self, seconds: int, spark: str) -> str:
        """The time so many seconds ago, for a column of dates or timestamps.

        >>> POSTGRESQL.before_now(86400, "timestamp")
        "(now()) - INTERVAL '86400 seconds'"
        >>> SQLITE.before_now(86400, "date")
        "date(datetime('now', '-86400 seconds'))"
        """
        base = spark.partition("(")[0]
        now = self.instant if base == "timestamp" else self.now
        ago = self.ago.format(now=now, seconds=seconds)
        return self.day.format(ago) if base == "date" else ago

    def matching(self, column: str, pattern: str) -> str:
        r"""A condition that a pattern matches whole texts.

        >>> POSTGRESQL.matching('"code"', "[A-Z]+")
        '"code" ~ \'\\A(?:[A-Z]+)\\Z\''
        """
        whole = self.whole.replace("{}", spelled_out(pattern))
        return self.matches.format(column=column, pattern=self.text_of(whole))

    def expect_columns(self, table: TableContract) -> None:
        """See that the columns of a table are not the same to the database."""
        seen: dict[str, str] = {}
        for each in table.names if self.folds_case else ():
            other = seen.setdefault(each.lower(), each)
            if other != each:
                raise SchemaError(
                    f"table {plain(table.name)!r} has the columns {plain(other)!r} and "
                    f"{plain(each)!r}, which are the same to {self.name}; rename one of them"
                )


_TYPES = {
    "boolean": "boolean", "tinyint": "smallint", "smallint": "smallint", "int": "integer",
    "bigint": "bigint", "float": "real", "double": "double precision", "decimal": "decimal",
    "string": "text", "date": "date", "timestamp": "timestamptz", "timestamp_ntz": "timestamp",
    "time": "time", "binary": "bytea", "interval": "interval",
}  # fmt: skip

POSTGRESQL = Dialect(
    "postgresql", "PostgreSQL 15", longest=63, in_bytes=True, folds_case=False,
    unique_nulls="UNIQUE NULLS NOT DISTINCT", types=_TYPES, other="jsonb", whole=r"\A(?:{})\Z",
)  # fmt: skip
DUCKDB = Dialect(
    "duckdb", "DuckDB 1.2", alters=False,
    types={**_TYPES, "float": "real", "double": "double", "tinyint": "tinyint", "binary": "blob",
        "timestamp_ntz(9)": "timestamp_ns"},
    other="json", matches="regexp_full_match({column}, {pattern})", whole="{}",
)  # fmt: skip
SQLITE = Dialect(
    "sqlite", "SQLite 3.37", same="{} IS {}", different="{} IS NOT {}", sets_not_null=False,
    alters=False,
    types={**_TYPES, "float": "real", "double": "real", "boolean": "integer", "decimal": "numeric",
        "binary": "blob", "timestamp": "text", "timestamp_ntz": "text", "date": "text",
        "time": "text", "interval": "text"},
    zoned=False, matches="{column} REGEXP {pattern}", whole="^({})$", checks_patterns=False,
    ago="datetime('now', '-{seconds} seconds')", day="date({})",
)  # fmt: skip
MYSQL = Dialect(
    "mysql", "MySQL 8.0.19", quote="`", same="{} <=> {}", different="NOT ({} <=> {})", longest=64,
    sets_not_null=False,  # only together with the type of the column, which is not known
    types={**_TYPES, "double": "double", "float": "float", "tinyint": "tinyint",
        "binary": "longblob", "timestamp": "datetime(6)", "timestamp_ntz": "datetime(6)",
        "time": "time(6)", "string": "longtext", "interval": "longtext"},
    key_text="varchar(255)", other="json",
    table_options=" CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin", escapes=True, zoned=False,
    matches="REGEXP_LIKE({column}, {pattern}, 'c')",
    now="utc_timestamp(6)", instant="utc_timestamp(6)", ago="{now} - INTERVAL {seconds} SECOND",
)  # fmt: skip
_SPARK_NOW = "CAST(to_utc_timestamp(current_timestamp(), current_timezone()) AS timestamp_ntz)"

SPARK = Dialect(
    "spark", "Spark 4.1", quote="`", same="{} <=> {}", different="NOT ({} <=> {})",
    informational=" NOT ENFORCED", escapes=True, matches="{column} RLIKE {pattern}",
    now=_SPARK_NOW, instant="current_timestamp()", ago="{now} - INTERVAL {seconds} SECONDS",
)  # fmt: skip
DATABRICKS = Dialect(
    "databricks", "Databricks Runtime 15.4", quote="`", same="{} <=> {}",
    different="NOT ({} <=> {})", unique=None, escapes=True,
    matches="{column} RLIKE {pattern}",
    now=_SPARK_NOW, instant="current_timestamp()", ago="{now} - INTERVAL {seconds} SECONDS",
)  # fmt: skip

DIALECTS = {each.name: each for each in (POSTGRESQL, SPARK, DATABRICKS, DUCKDB, MYSQL, SQLITE)}
"""Every dialect by the name that ``--dialect`` gives it."""


def dialect(name: str) -> Dialect:
    """The dialect of a name."""
    if name not in DIALECTS:
        raise InputError(f"unknown dialect {name!r}; there are: {', '.join(DIALECTS)}")
    return DIALECTS[name]


def comment(text: str, mark: str = "-- ") -> str:
    r"""A line of comment, which no name can end.

    >>> comment("a\nDROP TABLE b")
    '-- a\\nDROP TABLE b'
    """
    return mark + plain(text)


def nulls_sentence(contract: Contract) -> str:
    """How two nulls compare."""
    if contract.nulls == "equal":
        return "Two nulls count as equal."
    return "A null differs from everything, also from another null."


def is_plain(name: str) -> bool:
    """Whether a name needs no quotes in any dialect.

    >>> is_plain("order_id"), is_plain("order"), is_plain("Id"), is_plain("first name")
    (True, False, False, False)
    """
    return re.fullmatch(r"[a-z_][a-z0-9_]*", name) is not None and name not in _RESERVED


_WORDS = """
all alter analyze and anti any array as asc authorization between both by case cast check collate
column comment constraint create cross current current_date current_time current_timestamp
current_user database date day default delete desc describe distinct drop else end escape except
exists false fetch filter for foreign from full function global grant group grouping groups having
if ilike in index inner insert intersect interval into is join key lateral leading left like limit
lock natural not null of offset on only or order outer over overlaps partition position primary
qualify range rank read references revoke right row rows select semi session_user set show some
start system table then time timestamp to trailing true truncate type union unique unknown update
user using values view when where window with
"""

_RESERVED = frozenset(_WORDS.split())
"""Words that one dialect or another reserves."""
