"""Every form has every constraint, keeps odd names whole, and is what its readers read."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from holdfast.export import FORMS, exported
from holdfast.export.contract import Column, Contract, TableContract
from holdfast.export.dialects import DIALECTS
from holdfast.export.files import Exported
from holdfast.export.rules import rules_file
from holdfast.input.rules_file import read
from holdfast.model.column_values import Bounds, Domain, Pattern, ValueRule
from holdfast.model.constraints import Key, NotNull
from holdfast.model.errors import InputError, SchemaError
from holdfast.model.expectations import Expectation
from holdfast.model.grammar import parse
from holdfast.model.inclusion_dependencies import Attribute, ForeignKey
from holdfast.model.names import identifier
from tests.export.contracts import ODD, ODD_PARENT, ODD_TABLE, nearly, odd, shop


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("form", FORMS)
def test_every_form_can_be_written(form: str, dialect: str) -> None:
    names = ("odd one", "the parent") if form == "dbt" else (ODD_TABLE, ODD_PARENT)
    contracts = odd(names=names), odd("unequal", False, names), shop(), nearly()
    for contract in contracts:
        for name, text in exported(contract, form, dialect).items():
            assert text.endswith("\n"), name
            assert not text.endswith("\n\n")


def test_what_there_is_not() -> None:
    with pytest.raises(InputError, match="unknown form 'xml'; there are: sql, queries"):
        exported(shop(), "xml")
    with pytest.raises(InputError, match="unknown dialect 'oracle'; there are: postgresql"):
        exported(shop(), "sql", "oracle")
    with pytest.raises(InputError, match="only sql creates tables"):
        exported(shop(), "dbt", create=True)


def test_dbt_has_its_own_tests_and_ours() -> None:
    files = exported(shop(), "dbt", "duckdb")
    assert [*files] == ["models/holdfast.yml", "tests/generic/holdfast_violations.sql"]
    models = {each["name"]: each for each in yaml.safe_load(files["models/holdfast.yml"])["models"]}
    columns = {each["name"]: each for each in models["orders"]["columns"]}
    assert columns["order_id"]["data_tests"] == ["not_null", "unique"]
    to = {"to": "ref('customers')", "field": "customer_id"}
    assert columns["customer_id"]["data_tests"][1] == {"relationships": {"arguments": to}}
    assert columns["order_id"]["constraints"] == [{"type": "not_null"}]
    assert {"type": "primary_key", "columns": ["order_id"]} in models["orders"]["constraints"]
    names = [each["holdfast_violations"]["name"] for each in models["order_items"]["data_tests"]]
    assert "order_items__product_id__determines__unit_price" in names
    assert len(names) == len(set(names))


def test_dbt_keeps_odd_names() -> None:
    contract = odd(names=("odd one", "the parent"))
    text = exported(contract, "dbt", "duckdb")["models/holdfast.yml"]
    child, parent = yaml.safe_load(text)["models"]
    assert [each["name"] for each in child["columns"]] == [*ODD]
    assert child["config"] == {"alias": "odd one"}
    assert re.fullmatch("[a-z0-9_]+", child["name"])
    # dbt does not double quotes inside a name, so such a column gets a query.
    columns = {each["name"]: each for each in child["columns"]}
    assert columns["first name"]["quote"] is True
    assert "unique" in columns["first name"]["data_tests"]
    assert "data_tests" not in columns['a"b']
    assert parent["columns"][0]["quote"] is True, "a reserved word"
    assert "constraints" not in parent, "dbt would write them without quotes"
    with pytest.raises(SchemaError, match="dbt has no way to write the name"):
        exported(odd(), "dbt", "duckdb")


@pytest.mark.parametrize(("form", "name"), [("dbt", "{{ x }}"), ("soda", "${x}")])
def test_a_name_that_is_a_template_is_refused(form: str, name: str) -> None:
    table = TableContract("t", (Column(name, "bigint"),), 0, (Key("t", (name,)),))
    with pytest.raises(SchemaError, match="takes a part of the name"):
        exported(Contract("c", 1, "equal", "ignored", (table,)), form)


def test_a_suite_for_each_table() -> None:
    files = exported(shop(), "gx", "sqlite")
    suites = {name: json.loads(text) for name, text in files.items()}
    assert [*suites] == ["customers.json", "products.json", "orders.json", "order_items.json"]
    orders = suites["orders.json"]
    kinds = {each["meta"]["rule"]: each for each in orders["expectations"]}
    assert kinds["orders: not (t.ordered_on > t.shipped_on)"]["kwargs"] == {
        "column_A": "shipped_on",
        "column_B": "ordered_on",
        "or_equal": True,
        "ignore_row_if": "either_value_is_missing",
    }
    reference = kinds["orders(customer_id) in customers(customer_id)"]
    assert "FROM (SELECT * FROM {batch}) AS" in reference["kwargs"]["unexpected_rows_query"]
    assert 'FROM "customers" AS' in reference["kwargs"]["unexpected_rows_query"]


def test_braces_in_a_name_are_no_parameter() -> None:
    (name, *_) = files = exported(odd(), "gx", "sqlite")
    for each in json.loads(files[name])["expectations"]:
        query = each["kwargs"].get("unexpected_rows_query", "{batch}")
        assert "{e}" in query.format(batch="b") or "{e}" not in each["meta"]["rule"]


def test_soda_has_its_own_checks_and_queries() -> None:
    files = exported(shop(), "soda", "duckdb")
    orders = yaml.safe_load(files["orders.yml"])
    assert orders["dataset"] == "shop/orders"
    columns = {each["name"]: each.get("checks", []) for each in orders["columns"]}
    assert [*map(list, columns["order_id"])] == [["missing"], ["duplicate"]]
    place = {"dataset": "shop/customers", "column": "customer_id"}
    assert columns["customer_id"][1]["invalid"]["valid_reference_data"] == place
    queries = [each["failed_rows"] for each in orders["checks"] if "failed_rows" in each]
    qualifiers = [each["qualifier"] for each in queries]
    assert len(qualifiers) == len(set(qualifiers)) == 3


def test_a_data_contract_refers_to_odd_names_by_ids() -> None:
    form = yaml.safe_load(str(exported(odd(), "odcs", "postgresql")))
    child, parent = form["schema"]
    (reference,) = child["relationships"]
    ids = {each["name"]: each.get("id", each["name"]) for each in child["properties"]}
    assert reference["from"] == f"schema/{child['id']}/properties/{ids['order']}"
    assert reference["to"] == f"schema/{parent['id']}/properties/select"
    assert child["name"] == ODD_TABLE
    assert parent["name"] == ODD_PARENT
    (plain,) = yaml.safe_load(str(exported(shop(), "odcs")))["schema"][2]["relationships"]
    assert plain["from"] == "orders.customer_id"


VALUES = (
    Domain("orders", "status", "text", ("F", "O")),
    Domain("orders", "size", "number", ("1", "2")),
    Domain("orders", "price", "number", ("0.1", "9007199254740993")),
    Domain("orders", "name", "text", ("O'Neill", "a\\b")),
    Bounds("orders", "size", "number", at_least="1", at_most="50"),
    Bounds("orders", "price", "number", above="0"),
    Bounds("orders", "day", "text", at_least="2026-01-01", at_most="2026-12-31"),
    Bounds("orders", "seen", "text", below="2026-11-15 08:30:00Z"),
    Pattern("orders", "name", r"\w{2}-'.+"),
)


def values(rules: Sequence[ValueRule] = VALUES) -> Contract:
    """A table with rules about the values of its columns."""
    types = {"status": "string", "size": "int", "price": "double", "name": "varchar(9)",
             "day": "date", "seen": "timestamp"}  # fmt: skip
    columns = tuple(Column(name, type_) for name, type_ in types.items())
    table = TableContract("orders", columns, 5, tuple(rules))
    return Contract("shop", 1, "equal", "ignored", (table,))


def test_a_database_checks_values() -> None:
    text = str(exported(values(), "sql", "postgresql"))
    for check in (
        """CHECK ("status" IN ('F', 'O'))""",
        """CHECK ("size" IN (1, 2))""",
        """CHECK ("name" IN ('O''Neill', 'a\\b'))""",
        """CHECK ("size" BETWEEN 1 AND 50)""",
        """CHECK ("price" > 0.0)""",
        """CHECK ("day" BETWEEN CAST('2026-01-01' AS date) AND CAST('2026-12-31' AS date))""",
        """CHECK ("seen" < CAST('2026-11-15 08:30:00+00:00' AS timestamptz))""",
    ):
        assert check in text
    assert """CHECK ("name" ~ '\\A(?:[0-9A-Za-z_]{2}-''[^\\n]+)\\Z')""" in text
    assert "regexp_full_match(" in str(exported(values(), "queries", "duckdb"))
    assert "REGEXP_LIKE(`name`, '\\\\A(?:" in str(exported(values(), "sql", "mysql"))
    assert "-- " in str(exported(values(), "sql", "sqlite")).split("sqlite has no patterns")[0]
    escaped = str(exported(values(), "sql", "spark"))
    assert "CHECK (`name` IN ('O\\'Neill', 'a\\\\b'))" in escaped
    assert "< CAST('2026-11-15 08:30:00' AS datetime(6))" in str(exported(values(), "sql", "mysql"))


def test_tools_check_values_where_they_say_the_same() -> None:
    """And run queries elsewhere."""
    files = exported(values(), "dbt", "duckdb")
    [model] = yaml.safe_load(files["models/holdfast.yml"])["models"]
    tests = {each["name"]: each.get("data_tests") for each in model["columns"]}
    assert tests["status"] == [{"accepted_values": {"arguments": {"values": ["F", "O"]}}}]
    whole = {"values": [1, 2], "quote": False}
    assert tests["size"] == [{"accepted_values": {"arguments": whole}}]
    assert len(model["data_tests"]) == len(VALUES) - 2
    assert len(model["constraints"]) == len(VALUES)
    suite = json.loads(str(exported(values(), "gx", "duckdb")))["expectations"]
    assert [(each["type"], each["kwargs"]) for each in suite if "query" not in str(each)] == [
        ("expect_column_values_to_be_in_set", {"column": "status", "value_set": ["F", "O"]}),
        ("expect_column_values_to_be_in_set", {"column": "size", "value_set": [1, 2]}),
        *(
            ("expect_column_values_to_be_between",
             {"column": column, "min_value": least, "max_value": most, "strict_min": above,
              "strict_max": False})
            for column, least, most, above in (("size", 1, 50, False), ("price", 0, None, True))
        ),
    ]  # fmt: skip
    columns = yaml.safe_load(str(exported(values(), "soda", "duckdb")))["columns"]
    valid = [
        {name: value for name, value in check["invalid"].items() if name.startswith("valid")}
        for column in columns
        for check in column.get("checks", ())
    ]
    ends = {"valid_min": 1, "valid_max": 50}
    assert valid == [{"valid_values": ["F", "O"]}, {"valid_values": [1, 2]}, ends]
    quality = yaml.safe_load(str(exported(values(), "odcs", "duckdb")))["schema"][0]["quality"]
    assert len(quality) == len({each["name"] for each in quality}) == len(VALUES)


WHOLE = tuple(
    parse(f"orders: {rule}")
    for rule in (
        *("rows >= 1000", "rows <= 9000", "rows between 1000 and 9000", "rows = 5000"),
        *("newest(day) within 2 days", "newest(at) within 36 hours"),
    )
)


def whole_tables() -> Contract:
    columns = (Column("day", "date"), Column("at", "timestamp"))
    return Contract("any", 1, "equal", "ignored", (TableContract("orders", columns, 5_000, WHOLE),))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_rules_of_whole_tables_are_no_constraints(dialect: str) -> None:
    """Of a database; each is listed, with the reason."""
    text = str(exported(whole_tables(), "sql", dialect))
    for rule in WHOLE:
        assert f"--   {rule} (no constraint is about a whole table)" in text
    assert "CHECK" not in text
    queries = str(exported(whole_tables(), "queries", dialect))
    assert all(f"-- {rule}\n" in queries for rule in WHOLE)


def test_tools_check_whole_tables() -> None:
    """With their own checks of numbers of rows, else with queries."""
    files = exported(whole_tables(), "dbt", "duckdb")
    [model] = yaml.safe_load(files["models/holdfast.yml"])["models"]
    assert len(model["data_tests"]) == len(WHOLE)
    assert "constraints" not in model
    names = {test["holdfast_violations"]["name"] for test in model["data_tests"]}
    assert len(names) == len(WHOLE)
    suite = json.loads(str(exported(whole_tables(), "gx", "duckdb")))["expectations"]
    bounds = [(1000, None), (None, 9000), (1000, 9000), (5000, 5000)]
    assert [(each["type"], each["kwargs"]) for each in suite[:4]] == [
        ("expect_table_row_count_to_be_between", {"min_value": least, "max_value": most})
        for least, most in bounds
    ]
    assert all("unexpected_rows_query" in each["kwargs"] for each in suite[4:])
    soda = yaml.safe_load(str(exported(whole_tables(), "soda", "duckdb")))
    counts = [check["row_count"]["threshold"] for check in soda["checks"] if "row_count" in check]
    assert counts == [
        {"must_be_greater_than_or_equal": 1000},
        {"must_be_less_than_or_equal": 9000},
    ]
    assert sum("failed_rows" in check for check in soda["checks"]) == 4
    assert not any("checks" in column for column in soda["columns"])
    quality = yaml.safe_load(str(exported(whole_tables(), "odcs", "duckdb")))["schema"][0][
        "quality"
    ]
    assert [each["dimension"] for each in quality] == ["completeness"] * 4 + ["timeliness"] * 2
    page = str(exported(whole_tables(), "markdown"))
    assert all(rule.body in page.replace("`", "") for rule in WHOLE)


def test_rows_with_other_values_are_counted_where_some_may_be() -> None:
    contract = replace(values(), bounds=dict.fromkeys(VALUES, 3))
    contract = replace(contract, tables=(replace(contract.tables[0], bounds=contract.bounds),))
    [model] = yaml.safe_load(exported(contract, "dbt")["models/holdfast.yml"])["models"]
    [status] = next(e["data_tests"] for e in model["columns"] if e["name"] == "status")
    failures = {"fail_calc": "coalesce(sum(n_records), 0)", "error_if": ">3", "warn_if": ">0"}
    assert status["accepted_values"]["config"] == failures
    assert "constraints" not in model
    # A share of the values that are there is no share of the rows.
    suite = json.loads(str(exported(contract, "gx")))["expectations"]
    assert {each["type"] for each in suite} == {"unexpected_rows_expectation"}


@pytest.mark.parametrize(("form", "value"), [("dbt", "{{ x }}"), ("soda", "${x}")])
def test_a_value_that_is_a_template_is_refused(form: str, value: str) -> None:
    with pytest.raises(SchemaError, match="takes a part of the rule orders: status in"):
        exported(values([Domain("orders", "status", "text", (value,))]), form)


def test_a_value_that_no_database_can_write_is_refused() -> None:
    with pytest.raises(SchemaError, match="has a NUL in it"):
        exported(values([Domain("orders", "status", "text", ("a\0",))]), "sql")


def test_the_diagram() -> None:
    text = str(exported(shop(), "mermaid"))
    assert "        bigint order_id PK, FK\n" in text
    assert "        string email UK\n" in text
    assert '    customers ||--o{ orders : "customer_id"\n' in text
    assert '    "my table" {\n' in str(exported(odd(names=("my table", "p")), "mermaid"))
    lines = str(exported(odd(), "mermaid")).splitlines()
    attribute = re.compile(r' {8}\w+ [A-Za-z]\w*( (PK|FK|UK)(, (PK|FK|UK))*)?( "[^"\n]*")?')
    entity = re.compile(r' {4}([a-z]\w*|"[^"\n]*") \{')
    relation = re.compile(r' {4}[a-z]\w* [|o]{2}--o[|{] [a-z]\w* : "[^"\n]*"')
    for line in lines[1:]:
        assert (
            any(each.fullmatch(line) for each in (attribute, entity, relation)) or line == "    }"
        )
    assert sum(bool(attribute.fullmatch(line)) for line in lines) == len(ODD) + 2


def test_the_page() -> None:
    text = str(exported(shop(), "markdown"))
    assert "| `customer_id` | `bigint` | never null, refers to `customers`, `customer_id` |" in text
    assert "- ordered_on rises with order_id: `not (" in text
    hard = str(exported(odd(), "markdown"))
    assert '\n## my "odd"\\\\ntable\n' in hard, "a heading is one line"
    rows = [line for line in hard.splitlines() if line.startswith("| ")]
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 4 for row in rows)


def test_json_says_each_constraint_twice() -> None:
    form = json.loads(str(exported(odd(), "json")))
    key = form["tables"][ODD_TABLE]["keys"][0]
    assert key == {"rule": str(Key(ODD_TABLE, (ODD[0],))), "columns": [ODD[0]]}
    assert form["foreign_keys"][0]["referenced"] == {"table": ODD_PARENT, "columns": ["select"]}


def test_the_json_page_shows_what_is_printed() -> None:
    page = (Path(__file__).parent.parent.parent / "docs" / "json.md").read_text("utf-8")
    section = page.partition("\n## export\n")[2].partition("\n## ")[0]
    (block,) = re.findall(r"```json\n(.*?)```", section, flags=re.DOTALL)
    columns = (Column("id", "bigint"), Column("city", "string"))
    rules = (NotNull("orders", "id"), Key("orders", ("id",)))
    orders = TableContract("orders", columns, 1000, rules)
    reference = ForeignKey((Attribute("orders", "city"),), (Attribute("places", "city"),), 0.8)
    contract = Contract("shop", 3, "equal", "ignored", (orders,), (reference,))
    assert json.loads(block) == json.loads(str(exported(contract, "json")))


def test_rules_that_some_rows_may_break_are_bounded_everywhere() -> None:
    contract = nearly()
    text = "customers: city -> country"
    bounds = {str(rule): bound for rule, bound in contract.bounds.items()}
    assert (bounds[text], bounds["customers: key(customer_id)"]) == (1, 2)
    sql = str(exported(contract, "sql", create=True))
    assert "CONSTRAINT" not in sql
    assert "NOT NULL" not in sql
    assert f"--   {text} (at most 1 row may break it)\n" in sql
    reference = "orders(customer_id) in customers(customer_id)"
    assert f"--   {reference} (at most 1 row may break it)\n" in sql
    asked = str(exported(contract, "queries"))
    assert f"-- {text}: at most 1 row may break it. How many do:\nSELECT coalesce(" in asked
    models = {
        each["name"]: each
        for each in yaml.safe_load(exported(contract, "dbt")["models/holdfast.yml"])["models"]
    }
    assert "constraints" not in models["customers"]
    (column, *_) = models["customers"]["columns"]
    assert column["data_tests"][1]["unique"]["config"] == {
        "fail_calc": "coalesce(sum(n_records) - count(*), 0)",
        "error_if": ">2",
        "warn_if": ">0",
    }
    [test] = models["customers"]["data_tests"]
    assert test["holdfast_violations"]["config"] == {
        "fail_calc": "coalesce(sum(`removal`), 0)", "error_if": ">1", "warn_if": ">0",
    }  # fmt: skip
    suite = json.loads(exported(contract, "gx")["customers.json"])["expectations"]
    kwargs = {each["meta"]["rule"]: each["kwargs"] for each in suite}
    rows = next(table.rows for table in contract.tables if table.name == "customers")
    share = kwargs["customers: customer_id not null"]["mostly"]
    assert (rows - 1) / rows - 1e-6 <= share <= (rows - 1) / rows
    assert kwargs[text]["unexpected_rows_query"].endswith("WHERE `removal` > 1")
    soda = yaml.safe_load(exported(contract, "soda")["customers.yml"])
    metrics = {
        each["metric"]["name"]: each["metric"] for each in soda["checks"] if "metric" in each
    }
    metric = metrics[f"{text} (at most 1 row may break it)"]
    assert metric["threshold"] == {"must_be_less_than_or_equal": 1}
    assert "customers: key(customer_id) (at most 2 rows may break it)" in metrics
    odcs = yaml.safe_load(str(exported(contract, "odcs")))["schema"][0]
    assert [each["mustBeLessOrEqualTo"] for each in odcs["quality"]] == [
        bounds[str(rule)] for rule in contract.rules_of(contract.tables[0])
    ]
    assert not any({"unique", "required", "primaryKey"} & {*each} for each in odcs["properties"])
    page = str(exported(contract, "markdown"))
    assert "- `city -> country` (at most 1 row may break it)" in page
    assert "key |" not in page
    form = json.loads(str(exported(contract, "json")))["tables"]["customers"]
    [dependency] = form["functional_dependencies"]
    assert (dependency["rule"], dependency["max_rows"]) == (text, 1)
    assert " PK" not in str(exported(contract, "mermaid"))


def test_names_that_differ_stay_different() -> None:
    words: list[list[str]] = [
        ["a", "b"], ["a_b"], ["a__b"], ["ab"], ["A", "b"], ["a b"], ["a-b"], ["", "a"], ["1"], [""],
        ["x" * 90], ["x" * 91], ["ä"], ["ö"],
    ]  # fmt: skip
    made = [identifier(each, "key") for each in words]
    assert len(set(made)) == len(words)
    for name in made:
        assert re.fullmatch(r"[a-z][a-z0-9_]{0,59}", name)


# Writing


def test_one_file_or_a_folder(tmp_path: Path) -> None:
    one = Exported({"a.sql": "ä\n"}, "-- ")
    assert one.write(tmp_path / "b.sql") == [str(tmp_path / "b.sql")]
    assert (tmp_path / "b.sql").read_bytes() == "ä\n".encode()
    assert one.write(f"{tmp_path}/new/") == [str(tmp_path / "new" / "a.sql")]
    two = Exported({"m/a.yml": "1\n", "t/b.sql": "2\n"}, "# ")
    assert str(two) == "# m/a.yml\n\n1\n\n# t/b.sql\n\n2\n"
    assert two.write(tmp_path) == [str(tmp_path / "m" / "a.yml"), str(tmp_path / "t" / "b.sql")]
    with pytest.raises(InputError, match="there are 2 files to write"):
        two.write(tmp_path / "c.yml")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.sql", "m", "new", "t"]


def test_a_hostile_table_name_stays_in_its_folder(tmp_path: Path) -> None:
    name = "../../etc/passwd"
    table = TableContract(name, (Column("a", "bigint"),), 0, (Key(name, ("a",)),))
    contract = Contract("c", 1, "equal", "ignored", (table,))
    for form in ("gx", "soda"):
        for each in exported(contract, form):
            assert "/" not in each
            assert not each.startswith(".")


def test_where_it_cannot_be_written_is_said(tmp_path: Path) -> None:
    blocking = tmp_path / "file"
    blocking.write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        Exported({"a": "b"}, "").write(blocking / "below")
    assert [*tmp_path.iterdir()] == [blocking]


def test_tables_are_in_their_namespace() -> None:
    from dataclasses import replace

    placed: Any = replace(shop(), namespace=("main", "my sales"))
    assert "ALTER TABLE `main`.`my sales`.`orders`" in str(exported(placed, "sql"))
    assert "REFERENCES `main`.`my sales`.`customers`" in str(exported(placed, "sql"))
    assert "FROM `main`.`my sales`.`orders`" in str(exported(placed, "queries"))
    soda = yaml.safe_load(exported(placed, "soda")["orders.yml"])
    assert soda["dataset"] == "main/my sales/orders"
    assert "FROM `my sales`.`orders`" in soda["checks"][1]["failed_rows"]["query"]


@given(st.data())
def test_a_file_of_rules_is_read_as_it_was_written(data: st.DataObject) -> None:
    texts = st.text(min_size=1).filter(lambda text: bool(text.strip()))
    rules = data.draw(
        st.lists(
            st.builds(
                Expectation,
                texts.map(lambda name: str(Key("t", (name,)))),
                st.sampled_from(["error", "warn"]),
                st.sampled_from([0.0, 0.25, 1e-9]),
                st.none() | texts,
            ),
            unique_by=lambda each: each.name or object(),
        )
    )
    bounds = data.draw(st.lists(st.integers(0, 99), min_size=len(rules), max_size=len(rules)))
    rules += [Expectation("t: a -> b", max_rows=bound) for bound in bounds]
    reasons = data.draw(st.lists(texts, min_size=len(rules), max_size=len(rules)))
    for text in (rules_file(rules), rules_file(rules, reasons)):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "rules.yml")
            path.write_text(text, encoding="utf-8")
            assert [rule for _, rule in read(path)] == rules
