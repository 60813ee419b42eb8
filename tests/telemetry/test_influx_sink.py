"""Records on their way into InfluxDB, and everything that can come between.

Databases are real; only where a fault cannot be had from a real one, or the order of requests is looked at, a small
HTTP server (`web.py`) answers.
"""

import gzip
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from telemetry.influx import Influx, InfluxError, InfluxServer, InfluxSink
from telemetry.influx import sink as sink_module
from telemetry.influx.line import Encoder
from telemetry.parquet import ParquetSink, read_records
from telemetry.records import ControlRecord, FlowRecord, LinkRecord, PhyRecord, Record, TcpRecord
from telemetry.sinks import Sinks
from tests.harness.influxd import count, free_port, influxd
from tests.harness.records import full, recorded
from tests.harness.waiting import wait_for
from tests.harness.web import Stub, serving

pytestmark = pytest.mark.slow

TAGS = {"run": "a-run", "tier": "emulated", "scenario": "s"}
EPOCH_NS = time.time_ns()
#: a figure of each measurement that is always there
FIGURES = {"tcp": "cwnd_bytes", "flow": "bytes_received", "link": "frames", "phy": "per", "control": "value"}


def records(number: int, start: int = 0) -> list[Record]:
    """So many records of all kinds, each with a time of its own."""
    kinds: list[Record] = [
        full(TcpRecord),
        recorded(FlowRecord, host="h2", flow="bulk", bytes_received=1 << 40, goodput_bps=1.5e6),
        full(LinkRecord),
        full(PhyRecord),
        full(ControlRecord),
    ]
    return [replace(kinds[n % len(kinds)], time_ns=n) for n in range(start, start + number)]


def stored(influx: Influx) -> dict[str, int]:
    return {measurement: count(influx, measurement, field) for measurement, field in FIGURES.items()}


def begun(influx: Influx, spool: Path, flush_s: float = 30) -> InfluxSink:
    """A sink of a run that has begun; it waits so long in the end for a database that is away."""
    sink = InfluxSink(influx, TAGS, spool, flush_s=flush_s)
    sink.begin(EPOCH_NS)
    return sink


def feed(sink: InfluxSink, number: int, start: int = 0) -> None:
    for record in records(number, start):
        sink.write(record)


@pytest.fixture
def stub() -> Iterator[Stub]:
    with serving(Stub()) as made:
        yield made


def lines(stub: Stub) -> list[str]:
    """The lines a stub has accepted."""
    return [line for request in stub.answered[204] for line in gzip.decompress(request.body).decode().splitlines()]


def test_records_arrive_with_their_tags_and_times(influx: Influx, tmp_path: Path) -> None:
    sink = begun(influx, tmp_path / "spool")
    feed(sink, 1000)
    wait_for(lambda: sink.status().written == 1000)
    assert sink.status() == sink_module.SinkStatus(1000, 0, 0, 0, "writing", "")
    sink.close()
    assert sink.status() == sink_module.SinkStatus(1000, 0, 0, 0, "closed", "")
    assert stored(influx) == dict.fromkeys(FIGURES, 200)
    (series,) = influx.query("SELECT * FROM flow GROUP BY * LIMIT 1")
    assert series.tags == {**TAGS, "host": "h2", "flow": "bulk"}
    assert dict(zip(series.columns, series.values[0], strict=True)) == {
        "time": EPOCH_NS + 1,
        "bytes_received": 1 << 40,
        "goodput_bps": 1.5e6,
        "run_s": 1e-9,
    }
    assert list(tmp_path.iterdir()) == [], "nothing was spooled"


def test_no_record_is_lost_while_the_database_is_down(tmp_path: Path) -> None:
    """The same records go to Parquet; in the end both have the same."""
    port = free_port()
    (tmp_path / "db").mkdir()
    (tmp_path / "parquet").mkdir()
    influx = Influx(f"http://127.0.0.1:{port}")
    influx_sink = InfluxSink(influx, TAGS, tmp_path / "spool", flush_s=30)
    parquet_sink = ParquetSink(tmp_path / "parquet", TAGS)
    sinks = Sinks([influx_sink, parquet_sink])
    sinks.begin(EPOCH_NS)
    stopped = threading.Event()
    sent: list[int] = []

    def run() -> None:
        while not stopped.wait(0.005):
            for record in records(20, start=20 * len(sent)):
                sinks.write(record)
            sent.append(20)

    thread = threading.Thread(target=run)
    with influxd(tmp_path / "db", port):
        influx.create_database(30)
        thread.start()
        wait_for(lambda: influx_sink.status().written > 500)
    wait_for(lambda: influx_sink._spool.points > 500)
    assert influx_sink.status().state == "away"
    assert "Connection refused" in influx_sink.status().message
    with influxd(tmp_path / "db", port):
        before = influx_sink.status().written
        wait_for(lambda: influx_sink.status().written > before + 500)
        stopped.set()
        thread.join()
        sinks.close()
        status = influx_sink.status()
        assert (status.written, status.waiting, status.dropped) == (sum(sent), 0, 0)
        rows = {name: len(read_records(tmp_path / "parquet", name)) for name in FIGURES}
        assert stored(influx) == rows
        assert sum(rows.values()) == sum(sent)
    assert list((tmp_path / "spool" / influx.label).iterdir()) == []


def test_a_server_that_hangs(tmp_path: Path) -> None:
    with InfluxServer(tmp_path / "db", port=0) as server:
        influx = Influx(server.url)
        sink = begun(Influx(server.url, timeout_s=0.2), tmp_path / "spool")
        pid = server.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        feed(sink, 1000)
        wait_for(lambda: sink._spool.points == 1000)
        assert "no answer in time" in sink.status().message
        os.kill(pid, signal.SIGCONT)
        sink.close()
        assert (sink.status().written, sink.status().waiting) == (1000, 0)
        assert stored(influx) == dict.fromkeys(FIGURES, 200)


@pytest.mark.parametrize("status", [429, 503, 401, 301])
def test_order_is_kept(stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    monkeypatch.setattr(sink_module, "_BATCH_POINTS", 7)
    sink = begun(Influx(stub.url), tmp_path)
    feed(sink, 100)
    wait_for(lambda: len(lines(stub)) == 100)
    stub.status = status
    feed(sink, 100, start=100)
    wait_for(lambda: len(stub.answered[status]) >= 2)
    feed(sink, 100, start=200)
    wait_for(lambda: sink._spool.points == 200)
    assert sink.status().state == "away"
    stub.status = 204
    feed(sink, 100, start=300)
    wait_for(lambda: sink.status().written == 400)
    sink.close()
    expected = Encoder(TAGS, EPOCH_NS).lines(records(400))[0].decode().splitlines()
    assert lines(stub) == expected


def test_what_a_closed_sink_left_is_sent_by_the_next(tmp_path: Path) -> None:
    influx = Influx(f"http://127.0.0.1:{free_port()}")
    spool = tmp_path / "spool" / influx.label
    for part in range(3):
        sink = begun(influx, tmp_path / "spool", flush_s=0)
        feed(sink, 50, start=50 * part)
        sink.close()
        status = sink.status()
        assert (status.written, status.waiting, status.dropped, status.state) == (0, 50 * (part + 1), 0, "closed")
        assert status.message.startswith(f"{status.waiting} records wait in {spool} for the next run; InfluxDB at")
    # at the port of the URL that was all there was so far
    with InfluxServer(tmp_path / "db", port=int(influx.url.rpartition(":")[2])):
        sink = begun(influx, tmp_path / "spool")
        wait_for(lambda: sink.status().written == 150)
        sink.close()
        assert stored(influx) == dict.fromkeys(FIGURES, 30)
    assert list(spool.iterdir()) == []


def test_what_waits_for_one_database_does_not_go_to_another(influx: Influx, tmp_path: Path) -> None:
    away = InfluxSink(Influx(f"http://127.0.0.1:{free_port()}"), TAGS, tmp_path, flush_s=0)
    other = InfluxSink(influx, TAGS, tmp_path, flush_s=30)
    for sink, number in ((away, 50), (other, 100)):
        sink.begin(EPOCH_NS)
        feed(sink, number)
        sink.close()
    assert (away.status().waiting, other.status().written) == (50, 100)
    assert stored(influx) == dict.fromkeys(FIGURES, 20)


def test_a_database_dropped_in_mid_run(influx: Influx, tmp_path: Path) -> None:
    sink = begun(influx, tmp_path)
    feed(sink, 100)
    wait_for(lambda: sink.status().written == 100)
    influx.query(f"DROP DATABASE {influx.database}")
    feed(sink, 100, start=100)
    wait_for(lambda: sink.status().state == "away")
    assert f"no database {influx.database}" in sink.status().message
    influx.create_database(30)
    sink.close()
    assert (sink.status().written, sink.status().message) == (200, "")
    assert stored(influx) == dict.fromkeys(FIGURES, 20)


def test_refused_batches_are_set_aside_without_blocking(influx: Influx, tmp_path: Path) -> None:
    influx.write(f"control value=1.5 {EPOCH_NS}\n".encode())
    sink = begun(influx, tmp_path)
    feed(sink, 100)
    wait_for(lambda: sink.status().written + sink.status().rejected == 100)
    sink.write(recorded(FlowRecord, time_ns=100, host="h2", flow="bulk", bytes_received=1, goodput_bps=1.0))
    sink.close()
    status = sink.status()
    assert (status.written, status.rejected, status.waiting, status.dropped) == (81, 20, 0, 0)
    kept = tmp_path / influx.label / "rejected"
    assert status.message.startswith(f"20 records refused, kept in {kept}: InfluxDB at")
    assert "field type conflict" in status.message
    assert stored(influx) == {"tcp": 20, "flow": 21, "link": 20, "phy": 20, "control": 1}
    texts = [gzip.decompress(path.read_bytes()).decode() for path in kept.iterdir()]
    assert sum(text.count("\ncontrol,") for text in texts) == 20
    assert all(text.startswith("# InfluxDB at ") for text in texts)


def test_too_large_requests_are_divided(tmp_path: Path) -> None:
    (tmp_path / "db").mkdir()
    with influxd(tmp_path / "db", free_port(), INFLUXDB_HTTP_MAX_BODY_SIZE="600") as url:
        influx = Influx(url)
        influx.create_database(30)
        sink = begun(influx, tmp_path / "spool")
        feed(sink, 500)
        sink.write(recorded(ControlRecord, time_ns=500, name="huge", value=os.urandom(2000).hex()))
        sink.close()
        assert (sink.status().written, sink.status().rejected) == (500, 1)
        assert "Request Entity Too Large" in sink.status().message
        assert stored(influx) == dict.fromkeys(FIGURES, 100)


def test_without_a_disk_records_wait_in_memory(stub: Stub, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    stub.status = 503
    sink = begun(Influx(stub.url), tmp_path / "file" / "spool")
    feed(sink, 100)
    wait_for(lambda: "Not a directory" in sink.status().message)
    assert sink.status().waiting == 100
    stub.status = 204
    feed(sink, 100, start=100)
    wait_for(lambda: sink.status().written == 200)
    sink.close()
    assert lines(stub) == Encoder(TAGS, EPOCH_NS).lines(records(200))[0].decode().splitlines()


def test_records_that_fit_nowhere_are_counted_and_reported(
    stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sink_module, "_MEMORY_BYTES", 500)
    monkeypatch.setattr(sink_module, "_QUEUE_RECORDS", 50)
    monkeypatch.setattr(sink_module, "_BATCH_POINTS", 10)
    (tmp_path / "file").write_bytes(b"")
    stub.status = 503
    sink = begun(Influx(stub.url), tmp_path / "file" / "spool", flush_s=0)
    given = 0
    while not sink.status().dropped:
        feed(sink, 10, start=given)
        given += 10
        time.sleep(0.01)
    wait_for(lambda: sink.status().waiting + sink.status().dropped == given)
    with pytest.raises(InfluxError) as caught:
        sink.close()
    line = str(caught.value)
    assert line.startswith(f"{given} records will never be in InfluxDB: InfluxDB at {stub.url}: status 503")
    assert f"spool {tmp_path / 'file' / 'spool' / sink._influx.label}: Not a directory" in line
    assert (sink.status().waiting, sink.status().dropped) == (0, given)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_error_of_our_own_is_told(stub: Stub, tmp_path: Path) -> None:
    sink = begun(Influx(stub.url), tmp_path)
    sink.write(recorded(FlowRecord, host="h2", flow="bulk", bytes_received=1, goodput_bps=None))
    wait_for(lambda: "internal error of the sink: TypeError" in sink.status().message)
    feed(sink, 10)
    with pytest.raises(InfluxError, match="10 records will never be in InfluxDB: internal error of the sink"):
        sink.close()


def test_a_run_that_never_began_has_no_records_to_send(stub: Stub, tmp_path: Path) -> None:
    sink = InfluxSink(Influx(stub.url), TAGS, tmp_path)
    sink.close()
    assert sink.status() == sink_module.SinkStatus(0, 0, 0, 0, "closed", "")
    sink = InfluxSink(Influx(stub.url), TAGS, tmp_path)
    feed(sink, 10)
    with pytest.raises(InfluxError, match="10 records will never be in InfluxDB: the run did not begin"):
        sink.close()


def test_a_database_whose_disk_is_full(tmp_path: Path) -> None:
    """influxd 1.6 stays stuck when there is room again, until its supervisor starts it anew."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip(f"a small file system cannot be mounted here: {mounted.stderr.decode().strip()}")
    try:
        with InfluxServer(disk / "db", port=0) as server:
            influx = Influx(server.url)
            ballast = disk / "ballast"
            ballast.write_bytes(bytes(1_900_000))
            sink = begun(influx, tmp_path / "spool")
            given = 0
            while sink.status().state != "away":
                feed(sink, 500, start=given)
                given += 500
                time.sleep(0.01)
            assert "no space left on device" in sink.status().message
            feed(sink, 500, start=given)
            given += 500
            ballast.unlink()
            subprocess.run(["mount", "-o", "remount,size=50m", str(disk)], check=True)
            sink.close()
            assert (sink.status().written, sink.status().waiting) == (given, 0)
            assert stored(influx) == dict.fromkeys(FIGURES, given // 5)
            assert server.restarts == 1
    finally:
        subprocess.run(["umount", str(disk)], check=True)
