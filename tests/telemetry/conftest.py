"""An embedded InfluxDB for the tests that do not harm it."""

from collections.abc import Iterator
from itertools import count

import pytest

from telemetry.influx import Influx, InfluxServer

_numbers = count(1)


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InfluxServer]:
    with InfluxServer(tmp_path_factory.mktemp("influxdb"), port=0) as opened:
        yield opened


@pytest.fixture
def influx(server: InfluxServer) -> Influx:
    """A database of one's own on it."""
    database = Influx(server.url, database=f"test{next(_numbers)}")
    database.create_database(retention_days=30)
    return database
