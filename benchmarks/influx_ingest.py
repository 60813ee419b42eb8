"""Records per second into InfluxDB, and what they cost the program that makes them.

    .venv/bin/python -m benchmarks.influx_ingest [--seconds S] [--rate N] [--kill-at S --down-s S] [--page] [--json]

A feeder makes records at a steady rate (the senders, receivers, directions and radios of some runs, a quarter each) and
gives every one to an InfluxSink and to a ParquetSink. The database is an embedded one in a folder of its own. With
`--kill-at`, influxd is killed (SIGKILL) at that second and stays away for `--down-s`. In the end the records in the
database, in the Parquet files and sent are counted: all three must be the same. The writer's processor time is that of
the sink's thread. With `--page` (as root) an emulated run of the dashboard goes on beside it on the same database, and
a headless browser shows it: latency is that of `benchmarks/dashboard.py`.
"""

import json
import os
import resource
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import pyarrow.parquet as pq

from benchmarks.common import parser, whole
from telemetry.influx import Influx, InfluxServer, InfluxSink
from telemetry.parquet import ParquetSink
from telemetry.records import FlowRecord, LinkRecord, PhyRecord, Record, TcpRecord

#: part of one core that fadelab wants the writer to take at most
TARGET = 0.2
TAGS = {"run": "2026-01-31T12-00-00-benchmark-slacp-1", "tier": "emulated", "scenario": "benchmark"}
#: a figure of each measurement that every record has
FIGURES = {"tcp": "cwnd_bytes", "flow": "bytes_received", "link": "frames", "phy": "per"}
_STEP_S = 0.005


@dataclass
class Result:
    """What was measured."""

    rate: int
    seconds: float
    sent: int = 0
    enqueue_ns: list[float] = field(default_factory=list)
    writer_share: float = 0.0
    influxd_share: float = 0.0
    flush_s: float = 0.0
    most_waiting: int = 0
    restart_at_s: float | None = None
    #: from a record of the run beside it to its point on the page
    latencies_ms: list[float] = field(default_factory=list)
    in_influxdb: dict[str, int] = field(default_factory=dict)
    in_parquet: dict[str, int] = field(default_factory=dict)
    message: str = ""

    @property
    def complete(self) -> bool:
        """Whether every record is in both."""
        return self.in_influxdb == self.in_parquet and sum(self.in_influxdb.values()) == self.sent


def record(number: int, time_ns: int) -> Record:
    """Return the next record; figures move, as in a run."""
    source = number // 4 % 8
    match number % 4:
        case 0:
            return TcpRecord(
                time_ns=time_ns,
                host=f"h{source}",
                flow="bulk",
                cwnd_bytes=14480 + number % 90,
                ssthresh_bytes=7240,
                srtt_ms=51.2 + source,
                rto_ms=251.0,
                bytes_acked=number,
                retransmits=3,
                timeouts=1,
            )
        case 1:
            return FlowRecord(
                time_ns=time_ns,
                host=f"h{source}",
                flow="bulk",
                bytes_received=number * 1448,
                goodput_bps=1.9e6 + number % 1000,
            )
        case 2:
            return LinkRecord(
                time_ns=time_ns,
                link=f"up{source}",
                scheme="slacp",
                established=True,
                throughput_bps=2e6 + number % 7,
                goodput_bps=1.9e6 - number % 9,
                packets=number,
                frames=number + 9,
                retransmissions=number // 20,
                fec_frames=number // 50,
                fec_repairs=number // 60,
                residual_losses=4,
                queue_bytes=1500 * source,
                congestion_losses=7,
                corruption_losses=number // 19,
            )
        case _:
            return PhyRecord(
                time_ns=time_ns,
                link=f"down{source}",
                snr_db=12.5 + number % 64 / 10,
                evm_db=-11.75,
                cfo_hz=12.5 + number % 100,
                per=0.05,
            )


@contextmanager
def live_page(url: str, runs: Path, result: Result) -> Iterator[None]:
    """A run of the dashboard's and a page that shows it, both on the database at `url`."""
    from benchmarks.dashboard import settle, shown
    from tests.harness.dashboards import running

    order = {"scenario": "lossy-link", "tier": "emulated", "schemes": ["slacp"], "seconds": 3600, "seed": 1}
    with running("--port", "0", "--out", runs, "--influx", url) as dashboard, shown(dashboard) as page:
        dashboard.ask("/api/start", order)
        settle(page)
        yield
        result.latencies_ms = page.evaluate("window.fadelab.latency")


def measure(rate: int, seconds: float, kill_at_s: float | None, down_s: float, with_page: bool, folder: Path) -> Result:
    """Feed for so long, then count."""
    (folder / "parquet").mkdir()
    server = InfluxServer(folder / "influxdb", port=0)
    server.start()
    influx = Influx(server.url, timeout_s=60)
    sink = InfluxSink(Influx(server.url), TAGS, folder / "spool", flush_s=120)
    parquet = ParquetSink(folder / "parquet", TAGS)
    result = Result(rate, seconds)
    with live_page(server.url, folder / "runs", result) if with_page else nullcontext():
        feed(result, sink, parquet, server, kill_at_s, down_s)
    result.message = sink.status().message
    for measurement, figure in FIGURES.items():
        query = f'SELECT count("{figure}") FROM "{measurement}" WHERE "run" = $run'
        (series,) = influx.query(query, {"run": TAGS["run"]})
        result.in_influxdb[measurement] = series.values[0][1]
        result.in_parquet[measurement] = pq.read_metadata(folder / "parquet" / f"{measurement}.parquet").num_rows
    server.close()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    result.influxd_share = (used.ru_utime + used.ru_stime) / result.seconds
    return result


def feed(
    result: Result, sink: InfluxSink, parquet: ParquetSink, server: InfluxServer, kill_at_s: float | None, down_s: float
) -> None:
    """Give both sinks records at the rate, and close them."""
    rate, seconds = result.rate, result.seconds
    epoch_ns = time.time_ns()
    for each in (sink, parquet):
        each.begin(epoch_ns)
    (writer,) = (thread for thread in threading.enumerate() if thread.name == "influx-sink")
    assert writer.ident is not None
    clock = time.pthread_getcpuclockid(writer.ident)
    gone: threading.Thread | None = None
    start = time.monotonic()
    while (elapsed := time.monotonic() - start) < seconds:
        if kill_at_s is not None and elapsed >= kill_at_s:
            kill_at_s = None
            gone = threading.Thread(target=outage, args=(server, down_s, result, start))
            gone.start()
        due = int((elapsed + _STEP_S) * rate) - result.sent
        records = [record(n, epoch_offset_ns(n, rate)) for n in range(result.sent, result.sent + due)]
        began = time.perf_counter_ns()
        for each_record in records:
            sink.write(each_record)
        result.enqueue_ns.append((time.perf_counter_ns() - began) / max(1, due))
        for each_record in records:
            parquet.write(each_record)
        result.sent += due
        result.most_waiting = max(result.most_waiting, sink.status().waiting)
        time.sleep(_STEP_S)
    result.seconds = time.monotonic() - start
    result.writer_share = time.clock_gettime(clock) / result.seconds
    if gone is not None:
        gone.join()
    sink.close()
    result.flush_s = time.monotonic() - start - result.seconds
    parquet.close()


def epoch_offset_ns(number: int, rate: int) -> int:
    """Return when the record is due."""
    return number * 1_000_000_000 // rate


def outage(server: InfluxServer, down_s: float, result: Result, start: float) -> None:
    """Kill influxd, and start it again later."""
    pid = server.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    server.close()
    time.sleep(down_s)
    server.start()
    result.restart_at_s = time.monotonic() - start


def main() -> None:
    """Measure and print."""
    options_of = parser(__doc__, seed=None)
    options_of.add_argument("--seconds", type=whole(1), default=60, help="length of the feed (default 60)")
    options_of.add_argument("--rate", type=whole(1), default=20_000, help="records per second")
    options_of.add_argument("--kill-at", type=float, metavar="S", help="kill influxd at this second")
    options_of.add_argument("--down-s", type=float, default=30.0, metavar="S", help="and keep it away for so long")
    options_of.add_argument("--page", action="store_true", help="with a run of the dashboard's and a browser beside it")
    options = options_of.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = measure(options.rate, options.seconds, options.kill_at, options.down_s, options.page, Path(folder))
    enqueue_ns = sum(result.enqueue_ns) / len(result.enqueue_ns)
    if options.json:
        print(json.dumps({**vars(result), "enqueue_ns": enqueue_ns, "complete": result.complete, "target": TARGET}))
    else:
        print(f"sent               {result.sent:10}  records, {result.sent / result.seconds:.0f} per second")
        print(f"in InfluxDB        {sum(result.in_influxdb.values()):10}")
        print(f"in Parquet files   {sum(result.in_parquet.values()):10}")
        print(f"writer             {result.writer_share:10.1%}  of one core, target {TARGET:.0%}")
        if not options.page:
            print(f"influxd            {result.influxd_share:10.1%}  of one core")
        print(f"to enqueue         {enqueue_ns:10.0f}  ns per record")
        print(f"waiting at most    {result.most_waiting:10}  records; {result.flush_s:.1f} s after the last, none")
        if result.latencies_ms:
            print(f"probe to chart     {median(result.latencies_ms):10.0f}  ms, median of {len(result.latencies_ms)}")
        if result.restart_at_s is not None:
            print(f"killed at          {options.kill_at:10.1f}  s; back at {result.restart_at_s:.1f} s")
        print("complete" if result.complete else f"NOT COMPLETE: {result.message or 'counts differ'}")
    sys.exit(0 if result.complete else 1)


if __name__ == "__main__":
    main()
