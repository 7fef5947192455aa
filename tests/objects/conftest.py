"""Profiles on object stores: one in memory, which has conditional puts like the real ones, and a
real S3 server where one is installed (`make test-store`)."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.runtime import objects
from holdfast.store import Store
from tests.objects.server import BUCKET, Proxy, environment, program, serving

pytest.importorskip("obstore", reason="obstore is not installed")

# A lease that a test leaves behind is renewed, until its process ends, at an address of which
# nobody answers: not at that of a cloud.
for name, value in environment(9).items():
    os.environ.setdefault(name, value)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the cache, for one test."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("HOLDFAST_CACHE", str(folder))
    return folder


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of an S3 server."""
    found = program()
    if found is None:
        pytest.skip("no S3 server is installed; `make test-store` installs one where it can")
    with serving(found, tmp_path_factory.mktemp("s3") / "data") as port:
        yield port


@pytest.fixture
def proxy(server: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """A proxy before the server, which all requests of the test go through."""
    proxy = Proxy(server)
    for name, value in environment(proxy.port).items():
        monkeypatch.setenv(name, value)
    yield proxy
    proxy.close()


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a new profile in an object store in memory."""
    from obstore.store import MemoryStore

    bucket = MemoryStore()
    monkeypatch.setattr(objects, "_store", lambda *_: bucket)
    return f"s3://{BUCKET}/{secrets.token_hex(6)}"


@pytest.fixture
def real(proxy: Proxy) -> str:
    """The address of a new profile on the server."""
    return f"s3://{BUCKET}/{secrets.token_hex(6)}"


@pytest.fixture(params=["memory", pytest.param("real", marks=pytest.mark.store)])
def address(request: pytest.FixtureRequest) -> str:
    """The address of a new profile."""
    path: str = request.getfixturevalue(request.param)
    return path


@pytest.fixture
def store(address: str) -> Store:
    """A profile without a version."""
    return Store.create(address)
