"""Real servers of feeds, where they are installed (``make test-feeds``)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.feeds.servers import Broker, Postgres, jars, kafka, postgres, postgres_programs

_INSTALL = "; `make test-feeds` installs it where it can"


@pytest.fixture(scope="session")
def real_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker of Kafka."""
    class_path = jars("kafka")
    if class_path is None:
        pytest.skip(f"no Kafka is installed{_INSTALL}")
    with kafka(class_path, tmp_path_factory.mktemp("kafka") / "broker") as running:
        yield running


@pytest.fixture(scope="session")
def broker(real_broker: Broker) -> str:
    """Where it listens to everybody."""
    return real_broker.open


@pytest.fixture(scope="session")
def connect_jars() -> str:
    """The class path of Connect with Debezium."""
    class_path = jars("connect")
    if class_path is None:
        pytest.skip(f"no Kafka Connect with Debezium is installed{_INSTALL}")
    return class_path


@pytest.fixture(scope="session")
def database(connect_jars: str) -> Iterator[Postgres]:
    """A server of PostgreSQL."""
    programs = postgres_programs()
    if programs is None:
        pytest.skip(f"no PostgreSQL is installed{_INSTALL}")
    with postgres(programs) as server:
        yield server
