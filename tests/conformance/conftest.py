"""The file that an example needs."""

from pathlib import Path

import pytest

from channel.replay import Outcome
from channel.trace import TraceWriter
from common.units import MS


@pytest.fixture(scope="session")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the trace that the example of error model `trace` names."""
    folder = tmp_path_factory.mktemp("scenario")
    with TraceWriter(folder / "trace.parquet", link="up", producer="test") as trace:
        for number in range(500):
            trace.write(number * 20 * MS, 1000, Outcome.MISSED if number % 7 == 3 else Outcome.OK)
    return folder
