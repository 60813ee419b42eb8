"""Single transfers over time, as the paper's figures 2 and 3 draw them: segments, retransmissions, ACKs and drops.

Rules kept
- Sequence numbers count payload octets from 0 on, per flow; times are s since the run's start.
- A drop is a segment that its host has sent and the link has not: the router's queue had no room.
"""

from dataclasses import dataclass, field
from typing import Any

from common.sides import Side
from experiments.slowlink.cells import Case
from experiments.slowlink.jobs import DATA, drawn, scenario
from testbed.model.watch import Arrival, Segment, Watch
from testbed.papers.runs import seeded
from testbed.papers.watching import acknowledged, octet
from testbed.simulation import simulate

#: time (s) since the run's start, and octets
Point = tuple[float, float]


@dataclass
class Flow:
    """One flow's sender."""

    iss: int
    #: new segments, retransmitted ones, and the highest acknowledgement
    fresh: list[Point] = field(default_factory=list)
    again: list[Point] = field(default_factory=list)
    acked: list[Point] = field(default_factory=list)
    drops: list[Point] = field(default_factory=list)
    highest: int = -1


class Trace(Watch):
    """Watches a run; `flows` by name."""

    def __init__(self) -> None:
        self.flows: dict[str, Flow] = {}
        #: by the segment's identity: flow, time and octet of those that have not been on the link
        self._waiting: dict[int, tuple[Segment, str, Point]] = {}

    def sent(self, flow: str, segment: Segment, now: int) -> None:
        known = self.flows.setdefault(flow, Flow(segment.seq))
        if segment.length:
            first = octet(segment.seq, known.iss)
            point = now * 1e-9, float(first)
            (known.fresh if first > known.highest else known.again).append(point)
            known.highest = max(known.highest, first)
            self._waiting[id(segment)] = segment, flow, point

    def received(self, flow: str, segment: Segment, now: int) -> None:
        known = self.flows[flow]
        acked = acknowledged(segment, known.iss)
        if acked is not None:
            known.acked.append((now * 1e-9, float(acked)))

    def carried(self, side: Side, arrival: Arrival[Any], now: int) -> None:
        if side == DATA:
            self._waiting.pop(id(arrival.frame.payload), None)

    def end(self) -> None:
        """The segments that have not crossed by now were dropped."""
        for _, flow, point in self._waiting.values():
            self.flows[flow].drops.append(point)


def trace(case: Case, seed: int, settings: tuple[str, ...] = ()) -> Trace:
    """Run a cell once and return its trace."""
    seen = Trace()
    simulate(drawn(seeded(scenario(case, settings), seed)), seen)
    seen.end()
    return seen
