"""A real S3 server: the law, killed writers, and a server that fails or answers late."""

from __future__ import annotations

import json
import random
import re
import secrets
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.errors import ConflictError, StoreError
from holdfast.model.options import Options
from holdfast.store import Store
from holdfast.store.files import is_kept
from tests.flow.batches import batches
from tests.flow.tables import KINDS, Shop, small_limits
from tests.flow.test_kill import COLUMNS, batch, opened, rows_at, start
from tests.flow.test_law import LIMITS, OPTIONS, law
from tests.objects.server import BUCKET, SECRET, USER, Proxy, environment
from tests.objects.test_store import check_exact, names
from tests.store.versions import commit, fill
from tests.strategies import rows_of

pytestmark = pytest.mark.store


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests are tried again for a second, not for minutes."""
    monkeypatch.setenv("HOLDFAST_STORE_SECONDS", "1")


@law(4)
@given(data=st.data(), options=OPTIONS)
def test_kept_equals_fresh(server: int, data: st.DataObject, options: Options) -> None:
    kinds = data.draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=4))
    rows = data.draw(rows_of(len(kinds), 10))
    address = f"s3://{BUCKET}/{secrets.token_hex(6)}"
    with small_limits(**data.draw(LIMITS)) as patch:
        for name, value in environment(server).items():
            patch.setenv(name, value)
        shop = Shop(address, kinds, rows, options)  # type: ignore[arg-type]
        shop.assert_exact(rows)
        for _ in range(data.draw(st.integers(1, 3))):
            change = data.draw(batches(len(kinds), rows))
            shop.apply(**change.batch)
            rows = change.after
            shop.assert_exact(rows)
        assert shop.verify().equal
        assert names(shop.store, "leases") == set()


def test_killed_while_it_applies(real: str, cache: Path) -> None:
    Shop(real, COLUMNS, start())  # type: ignore[arg-type]
    for attempt in range(3):
        with subprocess.Popen(
            [sys.executable, "-m", "tests.flow.test_kill", real], stdout=subprocess.PIPE
        ) as worker:
            assert worker.stdout is not None
            worker.stdout.readline()
            time.sleep(random.Random(attempt).uniform(0.05, 0.6))
            worker.kill()
        shop = opened(real)  # type: ignore[arg-type]
        version = shop.store.head()
        shop.assert_exact(rows_at(version))
    assert shop.verify().equal
    inserts, deletes = batch(version)
    assert shop.apply(inserts=inserts, deletes=deletes, batch_id=str(version)).applied
    shop.assert_exact(rows_at(version + 1))
    assert names(shop.store, "leases") == set()
    named = shop.store.files()
    for earlier in shop.store.versions():
        named |= set(filter(is_kept, shop.store.files(earlier)))
    assert names(shop.store) == named


def test_an_answer_to_a_commit_is_lost(real: str, proxy: Proxy) -> None:
    """The request is sent again and meets its own effect, or is looked up: it is committed once."""
    store = Store.create(real)
    commit(store)
    rule = proxy.fault("PUT", r"/log/0+2\.json", "lose")
    assert commit(store) == 2
    assert rule.met.is_set()
    assert check_exact(Store.open(real)) == 2
    assert commit(store) == 3


def test_answers_to_leases_are_lost(real: str, proxy: Proxy) -> None:
    store = Store.create(real)
    with store.writing() as lease:
        body = fill(store, lease)
        for _ in range(2):
            rule = proxy.fault("PUT", r"/leases/", "lose")
            lease.confirm()
            assert rule.met.is_set()
        assert store.publish(body, lease) == 1
    assert names(store, "leases") == set()


@pytest.mark.parametrize("fault", ["busy", "refuse"])
def test_a_server_that_fails_now_and_then(real: str, proxy: Proxy, fault: str) -> None:
    """Each kind of request fails once or twice, and is made again."""
    Shop(real, COLUMNS, start())  # type: ignore[arg-type]
    shop = opened(real)  # type: ignore[arg-type]
    kinds = (
        ("PUT", "/data/"), ("PUT", "/leases/"), ("PUT", "/log/"), ("GET", "/log/"),
        ("GET", "list-type"), ("HEAD", "/log/"),
    )  # fmt: skip
    rules = [proxy.fault(*kind, fault, 2) for kind in kinds]  # type: ignore[arg-type]
    inserts, deletes = batch(1)
    shop.apply(inserts=inserts, deletes=deletes)
    assert [rule.left for rule in rules] == [0] * len(kinds)
    proxy.heal()
    shop.assert_exact(rows_at(2))


def test_a_server_that_is_gone(real: str, proxy: Proxy, impatient: None) -> None:
    """An error that says so, and the last version stands."""
    store = Store.create(real)
    commit(store)
    proxy.fault("PUT", "/data/", "busy", 1000)
    with pytest.raises(StoreError, match=rf"{real}/data/.*cannot be uploaded .*503"):
        commit(store)
    proxy.heal()
    assert check_exact(Store.open(real)) == 1
    proxy.fault("GET", "", "busy", 1000)
    proxy.fault("HEAD", "", "busy", 1000)
    with pytest.raises(StoreError, match=r"the object store does not answer|cannot be read"):
        Store.open(real)
    proxy.heal()
    assert commit(Store.open(real)) == 2


def test_a_commit_that_arrives_after_its_writer_gave_up(
    real: str, proxy: Proxy, impatient: None
) -> None:
    """Nobody can say whether it is committed; so its files stay, and if it arrives it is whole."""
    store = Store.create(real)
    commit(store)
    late = proxy.fault("PUT", r"/log/0+2\.json", "hold", 1)
    again = proxy.fault("PUT", r"/log/0+2\.json", "refuse", 1000)
    with pytest.raises(StoreError, match=r"did not answer whether version 2 is committed"):
        commit(store, "a batch")
    assert late.met.is_set()
    other = Store.open(real)
    # The process that gave up may be gone; its lease protects its files until it is old.
    assert other.clean() == []
    assert len(names(other, "leases")) == 1
    again.left = 0
    late.let_go.set()
    assert late.done.wait(60)
    assert other.head() == 2
    assert check_exact(Store.open(real)) == 2
    assert other.find_batch("orders", "a batch") is not None
    assert commit(other) == 3


def test_a_commit_that_arrives_after_a_rivals(real: str, proxy: Proxy, impatient: None) -> None:
    store = Store.create(real)
    late = proxy.fault("PUT", r"/log/0+1\.json", "hold", 1)
    again = proxy.fault("PUT", r"/log/0+1\.json", "refuse", 1000)
    with pytest.raises(StoreError, match=r"did not answer whether version 1 is committed"):
        commit(store)
    again.left = 0
    rival = Store(real)
    assert commit(rival) == 1
    winner = rival.read().run
    late.let_go.set()
    assert late.done.wait(60)
    assert Store.open(real).read().run == winner
    assert check_exact(Store.open(real)) == 1


def test_a_bucket_that_may_not_be_written(
    real: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    with pytest.raises(StoreError) as refused:
        Store.create(real)
    said = str(refused.value)
    assert real in said
    assert said.count("SignatureDoesNotMatch") == 1
    assert "does not answer" not in said
    assert "<" not in said
    for secret in (SECRET, "another", "Signature="):
        assert secret not in said


def test_a_profile_that_may_only_be_read(real: str, proxy: Proxy) -> None:
    """Reading needs no lease; a check works in a temporary folder; a batch is refused."""
    Shop(real, COLUMNS, start())  # type: ignore[arg-type]
    proxy.fault("PUT", "", "forbid", 1000)
    proxy.fault("POST", "", "forbid", 1000)
    shop = opened(real)  # type: ignore[arg-type]
    inserts, deletes = batch(1)
    before = names(shop.store)
    shop.assert_exact(start())
    assert shop.apply(inserts=inserts, deletes=deletes, dry_run=True).inserted == len(inserts)
    assert shop.verify().equal
    with pytest.raises(StoreError, match=rf"{real}/leases.*cannot be written .*403"):
        shop.apply(inserts=inserts, deletes=deletes)
    assert names(shop.store) == before


def test_a_bucket_that_is_not_there(proxy: Proxy) -> None:
    with pytest.raises(StoreError, match=r"s3://nobody-has-it/p: there is no such bucket"):
        Store.create("s3://nobody-has-it/p")


def test_no_credentials_are_stored(real: str) -> None:
    shop = Shop(real, COLUMNS, start())  # type: ignore[arg-type]
    for folder in ("", "log", "data"):
        for name in shop.store.storage.entries(folder):
            data = shop.store.storage.read(f"{folder}/{name}" if folder else name)
            assert SECRET.encode() not in data
            assert USER.encode() not in data.replace(b'"holdfast"', b"")
    assert json.loads(shop.store.storage.read("holdfast.json"))["format"] == 4


def test_a_batch_takes_few_requests(real: str, proxy: Proxy) -> None:
    """Each is a round trip that the driver waits for; data files are sent, and old ones deleted, at
    the same time."""
    shop = Shop(real, COLUMNS, start())  # type: ignore[arg-type]
    inserts, deletes = batch(1)
    proxy.requests.clear()
    shop.apply(inserts=inserts, deletes=deletes, batch_id="monday")
    waited = [each for each in proxy.requests if not re.search(r"/data/|POST .*delete", each)]
    assert len(waited) <= 20, "\n".join(waited)
    read = [request for request in proxy.requests if re.match("GET .*/data/", request)]
    assert read == [], "what was written here is in the cache"


def test_two_writers(real: str) -> None:
    """The second to commit is told, and loses nothing of the profile."""
    shop = Shop(real, COLUMNS, start())  # type: ignore[arg-type]
    rival = opened(real)  # type: ignore[arg-type]
    inserts, deletes = batch(1)
    with shop.store.writing() as lease:
        body = fill(shop.store, lease)
        rival.apply(inserts=inserts, deletes=deletes)
        with pytest.raises(ConflictError, match="committed version 2 first"):
            shop.store.publish(body, lease)
    rival.assert_exact(rows_at(2))
