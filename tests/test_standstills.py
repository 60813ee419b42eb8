"""The watch for standstills of the machine, and what the soak makes of them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.soak import late_without
from benchmarks.stillness import Standstill, Watch
from common.units import MS
from telemetry.parquet import ParquetSink
from telemetry.records import StationRecord
from testbed.paths import root

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root for a real-time priority"),
]

#: Unix time of a run's time 0
EPOCH_NS = 1_700_000_000 * 10**9


def test_what_a_watcher_tells_are_spans_and_nothing_else() -> None:
    command = [sys.executable, "-m", "benchmarks.stillness", "--watch", str(min(os.sched_getaffinity(0)))]
    told = subprocess.run(command, cwd=root(), input="", capture_output=True, text=True, check=True).stdout
    # of a machine that has not stood still: no line at all
    assert all(len(line.split()) == 2 for line in told.splitlines())


def test_all_processors_are_watched() -> None:
    with Watch() as watch:
        pass
    watch.close()
    assert {each.processor for each in watch.found} <= os.sched_getaffinity(0)
    assert all(each.ms >= 2 for each in watch.found)


def test_a_watcher_that_cannot_watch_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    watch = Watch()
    with pytest.raises(RuntimeError, match=r"processor \d.* has not been watched"):
        watch.close()


def test_late_events_without_a_standstill_of_their_length_are_the_programs(tmp_path: Path) -> None:
    with ParquetSink(tmp_path, {"run": "a"}) as sink:
        sink.begin(EPOCH_NS)
        for station, at_ms, late in (
            # 2 late events before the first record, 3 in the next span, 1 in the third
            ("st", 100, 2),
            ("st", 200, 5),
            ("st", 300, 6),
            # as many as it can be told of, at another station
            ("bas", 100, 0),
            ("bas", 200, 4),
        ):
            sink.write(
                StationRecord(
                    time_ns=at_ms * MS, station=station, processor_percent=1, memory_bytes=None, late_events=late
                )
            )

    def still(begin_ms: int, ms: int) -> Standstill:
        return Standstill(0, EPOCH_NS + begin_ms * MS, EPOCH_NS + (begin_ms + ms) * MS)

    assert late_without(tmp_path, []) == 10
    # too short for the first span; one for the second, at both stations; one that only touches the third
    assert late_without(tmp_path, [still(50, 4)]) == 10
    assert late_without(tmp_path, [still(150, 6)]) == 3
    assert late_without(tmp_path, [still(50, 6), still(296, 20)]) == 7
