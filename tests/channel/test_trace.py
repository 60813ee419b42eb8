"""Trace files: what is written is read back, and whatever is wrong is one TraceError that names the file."""

import errno
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from channel.replay import Outcome, Trace, TraceError
from channel.trace import FORMAT, SCHEMA, VERSION, TraceWriter, read_trace, write_trace
from tests.harness.waiting import PATIENCE_S

float32 = st.none() | st.floats(width=32, allow_nan=False)
rows = st.lists(
    st.tuples(st.integers(0, 2**62), st.integers(1, 2**31 - 1), st.sampled_from(Outcome), float32, float32),
    max_size=30,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "up.parquet"


def good_trace() -> Trace:
    n = 1_000
    return Trace(
        time_ns=[1_000 * i for i in range(n)],
        nbytes=[1_400] * n,
        outcome=[list(Outcome)[i % 3] for i in range(n)],
        snr_db=[None if i % 3 == 2 else float(np.float32(i / 7)) for i in range(n)],
        link="up",
        producer="test",
    )


@given(rows=rows, group=st.integers(1, 12))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_written_is_read_back(
    path: Path, rows: list[tuple[int, int, Outcome, float | None, float | None]], group: int
) -> None:
    rows.sort(key=lambda row: row[0])
    with TraceWriter(path, link="down", producer="a test", rows_per_group=group) as writer:
        for row in rows:
            writer.write(*row)
        assert writer.rows == len(rows)
    trace = read_trace(path)
    columns = (trace.time_ns, trace.nbytes, trace.outcome, trace.snr_db, trace.cfo_hz)
    assert list(zip(*columns, strict=True)) == rows
    assert (trace.link, trace.producer) == ("down", "a test")
    assert pq.ParquetFile(path).num_row_groups == -(-len(rows) // group)


def test_the_groups_of_a_long_trace_are_few(path: Path) -> None:
    # Parquet keeps 4 kB of each until the end: hours of frames in groups of some hundred rows would fill the memory
    with TraceWriter(path, link="up", producer="test") as writer:
        for at in range(10_000):
            writer.write(at, 100, Outcome.OK)
    metadata = pq.ParquetFile(path).metadata
    assert [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)] == [4096, 4096, 1808]


def test_a_disk_that_takes_its_time_does_not_hold_up_the_frames(path: Path) -> None:
    goes_on = Event()
    with ThreadPoolExecutor(1) as aside:
        disk = aside.submit(goes_on.wait, PATIENCE_S)
        with TraceWriter(path, link="up", producer="test", rows_per_group=100, aside=aside) as writer:
            for at in range(199):
                writer.write(at, 100, Outcome.OK, at / 7)
            assert not disk.done(), "the frames have waited for the disk"
            assert path.stat().st_size < 10, "the group was not left to the thread"
            goes_on.set()
            writer.write(199, 100, Outcome.MISSED)
    assert read_trace(path).time_ns == [*range(200)]
    assert pq.ParquetFile(path).num_row_groups == 2


def test_an_error_of_the_disk_comes_with_the_next_group_or_at_the_end(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(writer: pq.ParquetWriter, table: pa.Table) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", fail)
    with ThreadPoolExecutor(1) as aside:
        writer = TraceWriter(path, link="up", producer="test", rows_per_group=2, aside=aside)
        for at in range(3):
            writer.write(at, 100, Outcome.OK)
        with pytest.raises(OSError, match="No space left on device"):
            writer.write(3, 100, Outcome.OK)
        with pytest.raises(OSError, match="No space left on device"):
            writer.close()


def test_what_was_heard_before_an_error_is_kept(path: Path) -> None:
    def record() -> None:
        with TraceWriter(path, link="up", producer="test") as writer:
            writer.write(5, 100, Outcome.OK)
            writer.write(4, 100, Outcome.OK)

    with pytest.raises(TraceError, match="time_ns is 4 after 5"):
        record()
    assert read_trace(path).time_ns == [5]


def test_ctrl_c_at_any_step_leaves_a_trace_that_is_whole(path: Path) -> None:
    """KeyboardInterrupt comes between any two steps of Python: here at each one of `write`, one after the other."""
    code, step, seen = TraceWriter.write.__code__, 0, 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal seen
        if frame.f_code is not code:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            seen += 1
            if seen == step:
                raise KeyboardInterrupt
        return trace

    # coverage.py's, where it measures
    before = sys.gettrace()
    kept = set()
    while step == seen:
        step, seen = step + 1, 0
        with TraceWriter(path, link="up", producer="test") as writer:
            writer.write(5, 100, Outcome.OK, 12.5)
            sys.settrace(trace)
            try:
                writer.write(9, 200, Outcome.MISSED)
            except KeyboardInterrupt:
                pass
            finally:
                sys.settrace(before)
        found = read_trace(path)
        assert list(found.time_ns) in ([5], [5, 9])
        kept.add(len(found))
    assert step > 20
    assert kept == {1, 2}


def test_a_name_that_no_disk_takes_is_no_trace(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="File name too long"):
        read_trace(tmp_path / ("a" * 300))


def test_a_folder_is_no_trace(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"not a complete Parquet file .*record the trace again") as error:
        read_trace(tmp_path)
    assert "\n" not in str(error.value)


def test_a_writer_that_is_closed_twice_leaves_a_trace_that_is_whole(path: Path) -> None:
    with TraceWriter(path, link="up", producer="test") as writer:
        writer.write(5, 100, Outcome.OK)
        writer.close()
    assert list(read_trace(path).time_ns) == [5]


@pytest.mark.parametrize("keep", [0.0, 0.001, 0.3, 0.9, 0.999])
def test_a_truncated_file_is_refused(path: Path, keep: float) -> None:
    write_trace(path, good_trace())
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(TraceError, match=r"up\.parquet: not a complete Parquet file .*record the trace again"):
        read_trace(path)


def test_no_damage_to_the_rows_goes_unnoticed(path: Path) -> None:
    trace = good_trace()
    write_trace(path, trace)
    data = path.read_bytes()
    whole = read_trace(path)
    for at in range(0, len(data), 37):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        got = read_or_refusal(path)
        if isinstance(got, str):
            assert got.startswith(str(path))
            assert "\n" not in got
        else:
            # What no checksum covers (statistics, the producer's name) may change without harm.
            columns = ("time_ns", "nbytes", "outcome", "snr_db", "cfo_hz")
            assert all(getattr(got, c) == getattr(whole, c) for c in columns)


def read_or_refusal(path: Path) -> Trace | str:
    try:
        return read_trace(path)
    except TraceError as error:
        return str(error)


def write_table(path: Path, schema: pa.Schema, **metadata: str) -> None:
    schema = schema.with_metadata({"format": FORMAT, "version": str(VERSION), **metadata})
    pq.write_table(pa.table([pa.array([], field.type) for field in schema], schema=schema), path)


def test_files_of_another_kind_are_refused(path: Path) -> None:
    def refusal() -> str:
        with pytest.raises(TraceError) as caught:
            read_trace(path)
        assert str(caught.value).startswith(str(path))
        assert "\n" not in str(caught.value)
        return str(caught.value)

    assert "no such trace" in refusal()
    path.write_text("time_ns,nbytes\n")
    assert "`fadelab import-trace` makes one of a text" in refusal()
    pq.write_table(pa.table({"time_ns": [1]}), path)
    assert "not a channel trace" in refusal()
    write_table(path, SCHEMA, version=str(VERSION + 1))
    assert "update fadelab" in refusal()
    write_table(path, SCHEMA, version="two")
    assert "version is 'two'" in refusal()
    write_table(path, SCHEMA.remove(1))
    assert "column nbytes is missing" in refusal()
    write_table(path, SCHEMA.set(1, pa.field("nbytes", pa.string(), nullable=False)))
    assert "nbytes: string" in refusal()
    write_table(path, SCHEMA.set(1, pa.field("nbytes", pa.int32())))
    assert "nbytes: int32" in refusal()


def test_rows_that_make_no_sense_are_refused(path: Path) -> None:
    schema = SCHEMA.with_metadata({"format": FORMAT, "version": str(VERSION)})
    rows = {"time_ns": [2, 1], "nbytes": [1, 1], "snr_db": [None, None], "cfo_hz": [None, None]}
    for outcomes, words in ((["ok", "ok"], "time_ns goes back"), (["ok", "lost"], "outcome is 'lost', known are ok")):
        columns = {**rows, "outcome": outcomes}
        table = pa.table([pa.array(columns[f.name], f.type) for f in schema], schema=schema)
        pq.write_table(table, path)
        with pytest.raises(TraceError, match=words):
            read_trace(path)
