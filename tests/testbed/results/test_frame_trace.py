"""A run's channel trace, whose times count from an epoch that comes late."""

from pathlib import Path

from channel.replay import Outcome
from channel.trace import read_trace
from testbed.results.frame_trace import FrameTrace

OK, PAYLOAD, MISSED, _ = Outcome


def test_rows_wait_for_the_epoch_and_count_from_it(tmp_path: Path) -> None:
    path = tmp_path / "trace.parquet"
    with FrameTrace(path, link="up", producer="test") as trace:
        trace.write(900, 10, OK, 12.5, -300.0)
        trace.write(1000, 20, MISSED)
        trace.begin(1000)
        trace.write(1000, 30, PAYLOAD, 3.0)
        trace.write(5000, 40, OK)
    rows = read_trace(path)
    assert rows.time_ns == [-100, 0, 0, 4000]
    assert rows.nbytes == [10, 20, 30, 40]
    assert rows.outcome == [OK, MISSED, PAYLOAD, OK]
    assert rows.snr_db == [12.5, None, 3.0, None]
    assert rows.cfo_hz == [-300.0, None, None, None]
    assert (rows.link, rows.producer) == ("up", "test")


def test_run_without_epoch_has_empty_trace(tmp_path: Path) -> None:
    path = tmp_path / "trace.parquet"
    with FrameTrace(path, link="up", producer="test") as trace:
        trace.write(900, 10, OK)
    assert len(read_trace(path)) == 0
