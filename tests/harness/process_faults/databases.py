"""Faults of an InfluxDB that a live run writes to."""

import os
import signal
import time
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq

from telemetry.influx import Influx
from telemetry.parquet import read_records
from telemetry.records import RECORD_TYPES
from testbed.observers import SPOOL
from tests.harness.influxd import free_port, started, url_at
from tests.harness.process_faults.stage import Case, Stage, require, require_whole, stopped

#: seconds: shorter and longer than a request waits for its answer, and than a run's end waits for the database
_SHORTEST_S, _LONGEST_S = 0.3, 8.0


class _Database:
    """A server of the case's own, with its data in the case's folder."""

    def __init__(self, stage: Stage) -> None:
        self._folder, self._port = stage.folder / "influxd", free_port()
        self._folder.mkdir()
        self.process = started(self._folder, self._port)
        stage.stack.callback(self.kill)
        self.influx = Influx(url_at(self._port))
        self.influx.create_database(retention_days=1)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def start(self) -> None:
        self.process = started(self._folder, self._port)


def _database(fault: str, stage: Stage) -> None:
    database = _Database(stage)
    to_database = ("--influx", database.influx.url)
    command = stage.run(stage.scenario(workloads=[{"kind": "bulk", "bytes": 700_000}]), *to_database)
    stage.note(command.children(4))
    command.wait_crossed(stage.rng.randrange(20_000, 400_000))
    outage_s = stage.rng.uniform(_SHORTEST_S, _LONGEST_S)
    match fault:
        case "killed":
            database.kill()
            time.sleep(outage_s)
            database.start()
            end = command.end()
        case "paused":
            with stopped(database.process.pid):
                time.sleep(outage_s)
            end = command.end()
        case _:
            if fault == "gone":
                database.kill()
            else:
                os.kill(database.process.pid, signal.SIGSTOP)
            end = command.end()
            spool = stage.runs / SPOOL / database.influx.label
            require(f"records wait in {spool} for the next run" in " ".join(end.err.split()), end)
            database.kill()
            database.start()
    require_whole(end, stage.only)
    again = stage.run(stage.scenario(tier="model", tcp="sack"), *to_database)
    require((end := again.end()).status == 0, end)
    _require_all(database.influx, stage.folders()[0])


def _require_all(influx: Influx, folder: Path) -> None:
    """Every record of a run's folder is in the database, once."""
    for measurement in (kind.measurement for kind in RECORD_TYPES):
        if not (rows := read_records(folder, measurement)):
            continue
        epoch_ns = int(pq.read_schema(folder / f"{measurement}.parquet").metadata[b"epoch_ns"])
        kept = sorted(epoch_ns + row["time_ns"] for row in rows)
        found = influx.query(f'SELECT * FROM "{measurement}" WHERE "run" = $run', {"run": folder.name})
        sent = sorted(row[0] for series in found for row in series.values)
        require(kept == sent, f"{folder.name}, {measurement}: {len(kept)} records, {len(sent)} in the database")


CASES = tuple(
    Case(f"database {fault}", statement, partial(_database, fault))
    for fault, statement in (
        ("killed", "SIGKILL, and back after 0.3 to 8 s: whole; all records in it after the next run at the latest"),
        ("paused", "for 0.3 to 8 s: likewise"),
        ("gone", "SIGKILL for good: whole; says how many records wait, and the next run sends them"),
        ("stuck", "SIGSTOP for good: likewise"),
    )
)
