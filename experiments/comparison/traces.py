"""Single transfers as the paper draws them: segments, retransmissions with their causes, and windows over time.

Read first: COMPARISON figures 4 to 11.

Rules kept
- Sequence numbers count payload octets from 0 on. A segment is sent locally when the air carries it more often than
  the fixed host has sent it.
- Windows and TCP's own counters are looked at every `SAMPLE_NS`; a fast retransmission or a timeout is as exact.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from common.sides import Side
from experiments.comparison.cells import Case
from experiments.comparison.jobs import DATA, scenario
from testbed.model.link_network import LinkNetwork
from testbed.model.traffic import Traffic
from testbed.model.watch import OBSERVER, Arrival, Connection, Segment, Watch
from testbed.papers.runs import seeded
from testbed.papers.watching import octet
from testbed.simulation import simulate

SAMPLE_NS = 10_000_000

#: time (s) since the run's start, and octets
Point = tuple[float, float]


@dataclass(slots=True)
class Sender:
    """One TCP sender over time."""

    cwnd: list[Point] = field(default_factory=list)
    fast_retransmits: list[float] = field(default_factory=list)
    timeouts: list[float] = field(default_factory=list)
    _counted: tuple[int, int] = (0, 0)

    def sample(self, connection: Connection, now_s: float) -> None:
        """Look at its window, and at its counts since the last time."""
        self.cwnd.append((now_s, connection.cwnd))
        counters = connection.counters
        fast, timeouts = self._counted
        if counters.fast_retransmits > fast:
            self.fast_retransmits.append(now_s)
        if counters.timeouts > timeouts:
            self.timeouts.append(now_s)
        self._counted = (counters.fast_retransmits, counters.timeouts)


@dataclass
class Trace(Watch):
    """One transfer; watches a run with one flow."""

    #: segments of the fixed host, and those on the air
    wired: list[Point] = field(default_factory=list)
    air: list[Point] = field(default_factory=list)
    #: when the base station has sent a segment again
    local: list[float] = field(default_factory=list)
    #: the fixed host and, where the base station splits connections, its wireless side
    sender: Sender = field(default_factory=Sender)
    wireless: Sender = field(default_factory=Sender)
    _iss: dict[bool, int] = field(default_factory=dict)
    #: by octet: how many copies that the fixed host has sent have not been on the air
    _due: Counter[int] = field(default_factory=Counter)

    def sent(self, flow: str, segment: Segment, now: int) -> None:
        if segment.length:
            first = self._octet(segment, wired=True)
            self.wired.append((now * 1e-9, first))
            self._due[first] += 1
        else:
            self._iss.setdefault(True, segment.seq)

    def carried(self, side: Side, arrival: Arrival[Any], now: int) -> None:
        if side != DATA:
            return
        segment = arrival.frame.payload
        if not segment.length:
            # the SYN of a split connection is the base station's own
            self._iss.setdefault(False, segment.seq)
            return
        first = self._octet(segment, wired=False)
        self.air.append((now * 1e-9, first))
        if self._due[first]:
            self._due[first] -= 1
        else:
            self.local.append(now * 1e-9)

    def _octet(self, segment: Segment, *, wired: bool) -> int:
        return octet(segment.seq, self._iss[wired])

    def begin(self, network: LinkNetwork, traffic: Traffic) -> None:
        """Look at the windows from now on."""
        clock, epoch = network.clock, network.clock.now

        def sample(_: object) -> None:
            now_s = (clock.now - epoch) * 1e-9
            for connection in traffic.sending():
                self.sender.sample(connection, now_s)
            if network.splitter is not None:
                for connection in network.splitter.wireless():
                    self.wireless.sample(connection, now_s)
            clock.at(clock.now + SAMPLE_NS, sample, None, OBSERVER)

        sample(None)


def trace(case: Case, seed: int, settings: tuple[str, ...] = ()) -> Trace:
    """Run a cell once and return its trace."""
    seen = Trace()
    simulate(seeded(scenario(case, settings), seed), seen, seen.begin)
    return seen
