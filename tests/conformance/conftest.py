"""The files that examples need."""

from pathlib import Path

import pytest

from channel.replay import Outcome
from channel.trace import TraceWriter
from common.units import MS


@pytest.fixture(scope="session")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the traces that the examples of error model `trace` and of capacity model `mahimahi` name."""
    folder = tmp_path_factory.mktemp("scenario")
    with TraceWriter(folder / "trace.parquet", link="up", producer="test") as trace:
        for number in range(500):
            trace.write(number * 20 * MS, 1000, Outcome.MISSED if number % 7 == 3 else Outcome.OK)
    # in each 100 ms one packet of 1504 octets, which is 120.32 kbit/s
    (folder / "trace.mahimahi").write_text("".join(f"{time_ms}\n" for time_ms in range(100, 1100, 100)))
    return folder
