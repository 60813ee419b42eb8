"""Figure 3: one transfer from its sender's point of view, segment by segment.

The paper's example is slow-start overshoot: enhanced TCP over an error-free link with VBDC. The text around it is about
SLACP, so ours has SLACP, too.

Rule kept: sequence numbers count payload octets from 0 on; a segment is a retransmission when octets of it were sent
before.
"""

from dataclasses import dataclass, field

from experiments.slacp.cells import Case
from experiments.slacp.jobs import NS, Numbers, scenario, seeded
from testbed.model.run import simulate

#: the transfer that figure 3 shows
FIGURE3 = Case(2, "vbdc", "none", "enh", "1x1MB", "slacp")

#: time (s) since the SYN, octet
Point = tuple[float, int]


@dataclass(slots=True)
class Trace:
    """What a sender sent and heard; watches a run with one flow."""

    first_sent: list[Point] = field(default_factory=list)
    retransmitted: list[Point] = field(default_factory=list)
    acked: list[Point] = field(default_factory=list)
    _iss: int | None = None
    _started_at: int = 0
    #: octets sent at least once
    _sent_bytes: int = 0

    def sent(self, flow: str, segment: Numbers, now: int) -> None:
        """A segment leaves the sender; the first is the SYN."""
        if self._iss is None:
            self._iss, self._started_at = segment.seq, now
        if segment.length:
            octet = (segment.seq - self._iss - 1) % 2**32
            points = self.retransmitted if octet < self._sent_bytes else self.first_sent
            points.append(((now - self._started_at) * NS, octet))
            self._sent_bytes = max(self._sent_bytes, octet + segment.length)

    def received(self, flow: str, segment: Numbers, now: int) -> None:
        """A segment comes back to the sender."""
        assert self._iss is not None
        self.acked.append(((now - self._started_at) * NS, (segment.ack - self._iss - 1) % 2**32))

    def delivered(self, flow: str, nbytes: int, now: int) -> None:
        """Nothing of the receiver is shown."""

    def carried(self, side: str, arrival: object, now: int) -> None:
        """A frame on the air; nothing to this watch."""


def trace(case: Case, seed: int, settings: tuple[str, ...] = ()) -> Trace:
    """Run a cell once and return what its sender saw."""
    seen = Trace()
    simulate(seeded(scenario(case, settings), seed), seen)
    return seen
