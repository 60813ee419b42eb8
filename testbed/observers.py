"""Who gets to see a run besides its folder: a database, a dashboard."""

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from telemetry.records import Record, RunRecord
from telemetry.sinks import Sink, Sinks
from testbed.live.steering import Steering
from testbed.onlookers import NOBODY, Onlookers
from testbed.results.store import RunFolder
from testbed.results.summary import Summary
from testbed.scenario.schema import Scenario

if TYPE_CHECKING:
    from dashboard.hub import Hub
    from telemetry.influx import Influx, InfluxSink

#: called when a run is about to begin
Audience = Callable[[Scenario, RunFolder], Onlookers]
#: takes one line for people
Complain = Callable[[str], None]

#: in the run store: what waits for a database that is away
SPOOL = ".influx-spool"


def nobody(scenario: Scenario, folder: RunFolder) -> Onlookers:
    """Nobody."""
    return NOBODY


def open_influx(url: str | None, token_file: Path | None) -> "Influx | None":
    """Return the database at a URL, which must be there now; None without a URL. Raises InfluxError in one line."""
    if url is None:
        return None
    # an HTTP client behind it: not for a run without
    from telemetry.influx import Influx, read_token

    influx = Influx(url, None if token_file is None else read_token(token_file))
    influx.check()
    return influx


class DatabaseSink:
    """A sink for the records of a run that is kept below `runs`; what goes wrong, it says, and the run goes on.

    The run itself is a record, too: `begin` writes it, and `ended` what is known of it then. Of several processes that
    make one run together, one `lists` it.
    """

    def __init__(
        self, influx: "Influx", scenario: Scenario, run: str, runs: Path, complain: Complain, *, lists: bool = True
    ) -> None:
        # an HTTP client behind it: not for a run without
        from telemetry.influx import InfluxSink

        self._influx = influx
        self._tags = {"run": run, "tier": scenario.tier, "scenario": scenario.name}
        self._spool = runs / SPOOL
        self._complain = complain
        self._lists = lists
        self._newest_ns = 0
        self._record = RunRecord(
            time_ns=0, scheme=scenario.link.scheme, seed=scenario.seed, begins="", ends="now", goodput_bps=None
        )
        self._epoch_ns: int | None = None
        self._sink = InfluxSink(influx, self._tags, self._spool)

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
        """Send what is left, and say what could not be sent."""
        self._close(self._sink)

    def ended(self, summary: Summary | None) -> None:
        """Write when the run ended, and its goodput if it has a summary; after `close`."""
        from telemetry.influx import InfluxSink

        if self._epoch_ns is None:
            return
        # not the wall clock's: a run in virtual time is longer than it takes
        ends = str((self._epoch_ns + self._newest_ns) // 1_000_000 + 1)
        goodput_bps = None if summary is None else summary.goodput_bps
        sink = InfluxSink(self._influx, self._tags, self._spool)
        sink.begin(self._epoch_ns)
        sink.write(replace(self._record, ends=ends, goodput_bps=goodput_bps))
        self._close(sink)

    def _close(self, sink: "InfluxSink") -> None:
        try:
            sink.close()
        except RuntimeError as error:
            self._complain(str(error))
            return
        message = sink.status().message
        if message:
            self._complain(message)


def database_or_none(
    influx: "Influx | None", scenario: Scenario, run: str, runs: Path, complain: Complain, *, lists: bool
) -> Sink:
    """A `DatabaseSink`, or without a database one that keeps nothing."""
    return Sinks(()) if influx is None else DatabaseSink(influx, scenario, run, runs, complain, lists=lists)


def database_only(influx: "Influx | None", complain: Complain) -> Audience:
    """An audience that is a database, or nobody."""
    if influx is None:
        return nobody

    def join(scenario: Scenario, folder: RunFolder) -> Onlookers:
        sink = DatabaseSink(influx, scenario, folder.name, folder.path.parent, complain)
        return Onlookers([sink], ended=lambda summary, error: sink.ended(summary))

    return join


def dashboard_and_database(hub: "Hub", influx: "Influx | None", complain: Complain) -> Audience:
    """An audience that is a dashboard, which may steer, and a database if there is one."""
    from dashboard.hub import RunInfo

    def join(scenario: Scenario, folder: RunFolder) -> Onlookers:
        steering = Steering(scenario)
        info = RunInfo(
            name=folder.name,
            title=f"{scenario.name}, {scenario.link.scheme}",
            scenario=scenario.name,
            scheme=scenario.link.scheme,
            tier=scenario.tier,
            tcp=scenario.tcps,
            seed=scenario.seed,
        )
        feed = hub.open(info, steering)
        database = None
        if influx is not None:
            database = DatabaseSink(influx, scenario, folder.name, folder.path.parent, complain)

        def ended(summary: Summary | None, error: str | None) -> None:
            feed.ended(None if summary is None else asdict(summary), error)
            if database is not None:
                database.ended(summary)

        return Onlookers([feed] if database is None else [feed, database], feed, steering, ended)

    return join
