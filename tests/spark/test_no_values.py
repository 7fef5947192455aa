"""A profile without values on Spark: from files, with the secret in a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from holdfast import Options, Profile, sample
from holdfast.model import concealment
from holdfast.model.errors import InputError
from tests.flow.test_no_rows import contents

pytestmark = pytest.mark.spark

SHOP = Path(sample.__file__).with_name("shop")


def test_the_shop_without_values(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("what openssl rand prints\n")
    monkeypatch.setenv(concealment.SECRET_FILE, str(secret))
    paths = {name: str(SHOP / f"{name}.csv") for name in ("customers", "orders")}
    options = Options(kinds="keys,inds", keep_values=False)
    hidden = Profile.create(tmp_path / "hidden", paths, options=options, session=spark)
    foreign = [str(each) for each in hidden.foreign_keys()]
    assert "orders(customer_id) in customers(customer_id)" in foreign
    assert [str(each) for each in hidden.keys("customers")] == [
        "customers: key(customer_id)",
        "customers: key(email)",
    ]

    header, first, *lines = (SHOP / "customers.csv").read_text("utf-8").splitlines()
    gone, new = tmp_path / "gone.csv", tmp_path / "new.csv"
    gone.write_text("\n".join([header, *lines[:2]]) + "\n", "utf-8")
    # Another number, and the rest of the first customer.
    again = ",".join(["7151", *first.split(",")[1:]])
    new.write_text(f"{header}\n{again}\n", "utf-8")
    changes = hidden.apply("customers", inserts=new, deletes=gone)
    assert [str(each) for each in changes["keys"].lost] == ["customers: key(email)"]
    assert (changes.inserted, changes.deleted) == (1, 2)

    emails = {line.split(",")[1].encode() for line in [first, *lines]}
    assert all(b"@" in email for email in emails)
    files = [*contents(tmp_path / "hidden")]
    assert len(files) > 20
    assert [name for name, content in files if any(each in content for each in emails)] == []

    monkeypatch.setenv(concealment.SECRET, "not what openssl printed")
    with pytest.raises(InputError, match="is not the one that this profile was made with"):
        hidden.apply("customers", inserts=new)
