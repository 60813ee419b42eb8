"""Who gets to see a run besides its folder: a database, a dashboard."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from telemetry.records import Record
from telemetry.sinks import Sink, Sinks
from testbed.live import Onlookers
from testbed.results import Summary
from testbed.scenario import Scenario
from testbed.steering import Steering
from testbed.store import RunFolder

if TYPE_CHECKING:
    from dashboard.hub import Hub
    from telemetry.influx import Influx

#: called when a run is about to begin
Audience = Callable[[Scenario, RunFolder], Onlookers]
#: takes one line for people
Complain = Callable[[str], None]

#: in the run store: what waits for a database that is away
SPOOL = ".influx-spool"


def nobody(scenario: Scenario, folder: RunFolder) -> Onlookers:
    """Nobody."""
    return Onlookers()


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
    """A sink for the records of a run that is kept below `runs`; what goes wrong, it says, and the run goes on."""

    def __init__(self, influx: "Influx", scenario: Scenario, run: str, runs: Path, complain: Complain) -> None:
        # an HTTP client behind it: not for a run without
        from telemetry.influx import InfluxSink

        tags = {"run": run, "tier": scenario.tier, "scenario": scenario.name}
        self._sink = InfluxSink(influx, tags, runs / SPOOL)
        self._complain = complain

    def begin(self, epoch_ns: int) -> None:
        """Take the run's time 0."""
        self._sink.begin(epoch_ns)

    def write(self, record: Record) -> None:
        """Take one record."""
        self._sink.write(record)

    def close(self) -> None:
        """Send what is left, and say what could not be sent."""
        try:
            self._sink.close()
        except RuntimeError as error:
            self._complain(str(error))
            return
        message = self._sink.status().message
        if message:
            self._complain(message)


def database_or_none(influx: "Influx | None", scenario: Scenario, run: str, runs: Path, complain: Complain) -> Sink:
    """A `DatabaseSink`, or without a database one that keeps nothing."""
    return Sinks(()) if influx is None else DatabaseSink(influx, scenario, run, runs, complain)


def database_only(influx: "Influx | None", complain: Complain) -> Audience:
    """An audience that is a database, or nobody."""
    if influx is None:
        return nobody

    def join(scenario: Scenario, folder: RunFolder) -> Onlookers:
        return Onlookers([DatabaseSink(influx, scenario, folder.name, folder.path.parent, complain)])

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
        sinks: list[Sink] = [feed]
        if influx is not None:
            sinks.append(DatabaseSink(influx, scenario, folder.name, folder.path.parent, complain))

        def ended(summary: Summary | None, error: str | None) -> None:
            feed.ended(None if summary is None else asdict(summary), error)

        return Onlookers(sinks, feed, steering, ended)

    return join
