"""The observers of a run besides its folder: a database and a dashboard."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from telemetry.records import Record, RunRecord
from telemetry.sinks import Sink, Sinks
from testbed.results.store import RunFolder
from testbed.results.summary import Summary
from testbed.run_hooks import NO_HOOKS, RunHooks
from testbed.scenario.schema import Scenario
from testbed.steering import Steering
from testbed.tiers import TIERS

if TYPE_CHECKING:
    from dashboard.hub import Hub, RunInfo
    from telemetry.influx import Influx, InfluxSink

#: makes the hooks of a run that is about to begin
MakeHooks = Callable[[Scenario, RunFolder], RunHooks]
#: shows one line to the user
Complain = Callable[[str], None]

#: in the run store: records that wait for an unreachable database
SPOOL = ".influx-spool"


def no_hooks(scenario: Scenario, folder: RunFolder) -> RunHooks:
    """Return no hooks."""
    return NO_HOOKS


def open_influx(url: str | None, token_file: Path | None) -> "Influx | None":
    """Return the database at a URL, which must answer; None without a URL. Raises InfluxError in one line."""
    if url is None:
        return None
    # imports an HTTP client, which runs without a database do without
    from telemetry.influx import Influx, read_token

    influx = Influx(url, None if token_file is None else read_token(token_file))
    influx.check()
    return influx


class DatabaseSink:
    """A database sink for a run kept below `runs`. On an error it calls `complain`, and the run goes on.

    The run itself is a record, too: `begin` writes it, `ended` completes it. Where several processes form one run, only
    one has `lists` set.
    """

    def __init__(
        self, influx: "Influx", scenario: Scenario, run: str, runs: Path, complain: Complain, *, lists: bool = True
    ) -> None:
        # as above
        from telemetry.influx import InfluxSink

        tags = {"run": run, "tier": scenario.tier, "scenario": scenario.name}
        self._open_sink = partial(InfluxSink, influx, tags, runs / SPOOL)
        self._complain = complain
        self._lists = lists
        self._newest_ns = 0
        self._record = RunRecord(
            time_ns=0,
            scheme=scenario.link.scheme,
            tcp=scenario.tcps,
            seed=scenario.seed,
            begins="",
            ends="now",
            goodput_bps=None,
            duration_s=None,
        )
        self._epoch_ns: int | None = None
        self._sink = self._open_sink()

    def begin(self, epoch_ns: int) -> None:
        """Take the run's time 0."""
        self._epoch_ns = epoch_ns
        self._record = replace(self._record, begins=str(epoch_ns // 1_000_000))
        self._sink.begin(epoch_ns)
        if self._lists:
            self._sink.write(self._record)

    def write(self, record: Record) -> None:
        """Take one record."""
        self._newest_ns = max(self._newest_ns, record.time_ns)
        self._sink.write(record)

    def close(self) -> None:
        """Send the remaining records; complain about those that could not be sent."""
        close_sink(self._sink, self._complain)

    def ended(self, summary: Summary | None) -> None:
        """Write the end of the run, and its goodput if it has a summary; to be called after `close`."""
        if self._epoch_ns is None:
            return
        # by the records, not the wall clock: virtual time runs faster
        ends = str((self._epoch_ns + self._newest_ns) // 1_000_000 + 1)
        sink = self._open_sink()
        sink.begin(self._epoch_ns)
        record = replace(self._record, ends=ends)
        if summary is not None:
            record = replace(record, goodput_bps=summary.goodput_bps, duration_s=summary.duration_s)
        sink.write(record)
        close_sink(sink, self._complain)


def close_sink(sink: "InfluxSink", complain: Complain) -> None:
    """Send the remaining records; complain about those that could not be sent."""
    try:
        sink.close()
    except RuntimeError as error:
        complain(str(error))
        return
    message = sink.status().message
    if message:
        complain(message)


def database_or_none(
    influx: "Influx | None", scenario: Scenario, run: str, runs: Path, complain: Complain, *, lists: bool
) -> Sink:
    """Return a `DatabaseSink`, or without a database a sink that keeps nothing."""
    return Sinks(()) if influx is None else DatabaseSink(influx, scenario, run, runs, complain, lists=lists)


def database_hooks(influx: "Influx | None", complain: Complain) -> MakeHooks:
    """Return hooks with a database, or none without one."""
    if influx is None:
        return no_hooks

    def make(scenario: Scenario, folder: RunFolder) -> RunHooks:
        sink = DatabaseSink(influx, scenario, folder.name, folder.path.parent, complain)
        return RunHooks([sink], ended=lambda summary, error: sink.ended(summary))

    return make


def run_info(scenario: Scenario, run: str) -> "RunInfo":
    """Return what a dashboard shows of the run of a scenario, by the name `run`."""
    from dashboard.hub import RunInfo

    return RunInfo(
        name=run,
        title=f"{scenario.name}, {scenario.link.scheme}",
        scenario=scenario.name,
        scheme=scenario.link.scheme,
        tier=scenario.tier,
        tcp=scenario.tcps,
        seed=scenario.seed,
        radio=TIERS[scenario.tier].radio,
    )


def dashboard_hooks(hub: "Hub", influx: "Influx", complain: Complain) -> MakeHooks:
    """Return hooks with a dashboard, its controls, and a database."""
    with_database = database_hooks(influx, complain)

    def make(scenario: Scenario, folder: RunFolder) -> RunHooks:
        steering = Steering(scenario)
        feed = hub.open(run_info(scenario, folder.name), steering)
        database = with_database(scenario, folder)

        def ended(summary: Summary | None, error: str | None) -> None:
            feed.ended(None if summary is None else summary.plain(), error)
            database.ended(summary, error)

        return RunHooks([feed, *database.sinks], feed, steering, ended)

    return make
