"""The two stations of one link of a live run: their processes, and what they report."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from common.sides import SIDES, STATIONS, Side, Station, other
from hosts.kernel.network import Role
from hosts.messages import FromProcess, LossEvents, Started, StationChange, StationConfig, Transmissions, Watch
from linklayer.station_counts import StationCounts, StationFinal, StationReport
from telemetry.records import AccessRecord, PhyRecord, Record, StationRecord
from testbed.live.children import Child, ChildError, ChildGroup
from testbed.live.media import Wiring
from testbed.results.collisions import CollisionCounter
from testbed.results.ground_truth import Confusion, GuessScore, LossGuessMerger
from testbed.results.store import RunFolder, station_log
from testbed.results.summary import LinkResult, belief_record, joined_record, summarize_access
from testbed.scenario.run_plan import Plan

_STATION = "testbed.live.station_process"


class LinkStations:
    """Starts and changes the stations of a plan's link, and keeps their counts; `write` takes their records.

    `names`: of the stations' namespaces, which messages, logs and the manifest have, too; None: `st` and `bas`.
    """

    def __init__(
        self,
        plan: Plan,
        wirings: Mapping[Side, Wiring],
        folder: RunFolder,
        write: Callable[[Record], None],
        names: Mapping[Station, Role] | None = None,
    ) -> None:
        self._plan = plan
        #: the plan with the changes so far
        self._present = plan
        self._wirings = wirings
        self._folder = folder
        self._write = write
        self._names: Mapping[Station, Role] = {"st": "st", "bas": "bas"} if names is None else names
        self._stations: dict[Side, Child] = {}
        self._sides: dict[str, Side] = {}
        self._latest: dict[Side, StationReport] = {}
        self._finals: dict[Side, StationFinal] = {}
        self._score = GuessScore()
        self._merger = LossGuessMerger(self._score)
        #: on a shared carrier
        self._collisions = CollisionCounter()
        self._shared_clock = False
        self._access: dict[Side, AccessRecord] = {}
        #: time up to which each station has reported its losses and guesses
        self._loss_events_until: dict[Side, int] = {}
        #: bits sent on the air over time (s)
        self._sent_bits: dict[Side, list[tuple[float, float]]] = {side: [(0.0, 0.0)] for side in SIDES}

    def start(self, group: ChildGroup) -> None:
        """Start the processes."""
        # a start takes seconds where the clock is virtual; GNU Radio's threads cannot be copied
        copied = self._plan.clock == "virtual" and not self._plan.tier.radio
        for side, wiring in self._wirings.items():
            name = self._names[STATIONS[side]]
            log = station_log(self._folder.path, name)
            child = group.add(Child(f"station {name}", _STATION, pass_fds=wiring.fds, log=log, copied=copied))
            self._sides[child.name] = side
            self._stations[side] = child

    def configure(self, namespaces: Mapping[Role, str]) -> None:
        """Configure the stations, whose TAPs are in the run's namespaces."""
        for side, child in self._stations.items():
            config = StationConfig(
                scenario=_values(self._plan),
                side=side,
                folder=str(self._folder.path.absolute()),
                namespace=namespaces[self._names[STATIONS[side]]],
                wiring=self._wirings[side].config,
            )
            child.send(config)

    def watch(self, watched: bool) -> None:
        """Let the stations send views of their radios, or stop."""
        for station in self._stations.values():
            station.send(Watch(watched=watched))

    def change(self, after: Plan) -> None:
        """Go on with another plan, which may differ in the air, errors, link scheme and filters."""
        before, self._present = self._present, after
        for side, wiring in self._wirings.items():
            if wiring.set_path is not None:
                wiring.set_path(after.stations[side].air)
        if _values(before) != _values(after):
            for station in self._stations.values():
                station.send(StationChange(scenario=_values(after)))

    @property
    def ended(self) -> bool:
        """Whether both stations have sent their final reports."""
        return len(self._finals) == len(SIDES)

    def has(self, child: Child) -> bool:
        """Whether a process is one of these stations."""
        return child.name in self._sides

    def handle(self, child: Child, message: FromProcess) -> None:
        """Handle a message of one of the stations."""
        side = self._sides[child.name]
        match message:
            case Started():
                if message.radio:
                    self._folder.note_radio(self._names[STATIONS[side]], message.radio)
            case PhyRecord() | StationRecord():
                self._write(message)
            case Transmissions():
                self._collisions.handle(side, message.spans_s)
                self._shared_clock = True
            case AccessRecord():
                self._access[side] = message
                self._write(replace(message, collisions=self._counted_collisions(side)))
            case StationReport():
                self._handle_report(side, message)
            case LossEvents():
                self._handle_loss_events(side, message)
            case StationFinal():
                self._finals[side] = message

    def _handle_report(self, side: Side, report: StationReport) -> None:
        self._latest[side] = report
        points = self._sent_bits[side]
        last_s, last_bits = points[-1]
        time_s = report.time_ns / 1e9
        points.append((time_s, last_bits + report.throughput_bps * (time_s - last_s)))
        far = self._latest.get(other(side))
        self._write(joined_record(side, report, StationCounts() if far is None else far.counts))
        if (beliefs := belief_record(side, report)) is not None:
            self._write(beliefs)

    def _handle_loss_events(self, side: Side, events: LossEvents) -> None:
        """Take a station's losses and guesses; score those up to the time that both stations have reported."""
        for loss in events.losses:
            self._merger.handle(loss)
        for guess in events.guesses:
            self._merger.handle(guess)
        self._loss_events_until[side] = events.until_ns
        if len(self._loss_events_until) == len(SIDES):
            self._merger.settle(min(self._loss_events_until.values()))

    def _counted_collisions(self, side: Side) -> int | None:
        return self._collisions.collisions[side] if self._shared_clock else None

    # -- the result ------------------------------------------------------------------------------------------

    def confusion(self) -> Confusion | None:
        """Return the guesses by true cause; None when filters guess and the true causes are unknown."""
        if not self._plan.tier.fates:
            return None if self._plan.guesses or self._present.guesses else {}
        self._merger.settle(max(self._loss_events_until.values(), default=0) + 1)
        return self._score.confusion()

    def result(self, until_s: float) -> LinkResult:
        """Return the counts of the run, which went on until `until_s`. Raises ChildError without the final reports."""
        if not self.ended:
            raise ChildError("a station ended without its final report")
        return LinkResult(
            plan=self._plan,
            finals=self._finals,
            sent_bits=self._sent_bits,
            access={
                side: summarize_access(record, self._counted_collisions(side), until_s)
                for side, record in self._access.items()
            },
        )


def _values(plan: Plan) -> Mapping[str, Any]:
    """Return the values of a plan's scenario that concern the stations of its link.

    A station is told of a change when it comes: runs that differ in a later change begin alike.
    """
    return {name: value for name, value in plan.values.items() if name not in ("changes", "second_link")}
