"""Single runs as the paper draws them: windows, queue, segment sizes and the estimator over time.

Read first: LT-TCP figures 3, 6, 7 and 8.

Rule kept: everything is looked at every `SAMPLE_NS`; a timeout has the time of the look that found it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from common.units import MS, SECOND
from experiments.lt_tcp.cells import Case
from experiments.lt_tcp.jobs import Run, values

SAMPLE_NS = 50 * MS


@dataclass(slots=True)
class Trace:
    """The first flow's sender and the queue over time (s)."""

    times: list[float] = field(default_factory=list)
    #: octets
    cwnd: list[int] = field(default_factory=list)
    smss: list[int] = field(default_factory=list)
    #: LT-TCP's estimate, a share; and the PER of the last hop then
    estimate: list[float] = field(default_factory=list)
    per: list[float] = field(default_factory=list)
    #: packets at the bottleneck
    queue: list[int] = field(default_factory=list)
    timeouts: list[float] = field(default_factory=list)


def trace(
    case: Case, seed: int, settings: Sequence[str], seconds: float, pers: Sequence[tuple[float, float]] = ()
) -> Trace:
    """Return the first `seconds` of a run. `pers`: from these times (s) on the last hop has these PERs, shares."""
    flows = Run(case.scheme, case.per_pct, values(settings)).flows(seed)
    seen = Trace()
    changes = sorted(pers)
    counted = 0
    end = int(seconds * SECOND)
    for now in range(SAMPLE_NS, end + 1, SAMPLE_NS):
        while changes and changes[0][0] * SECOND < now:
            flows.per = changes.pop(0)[1]
        flows.clock.run(now)
        connection = flows.senders[0].connection
        seen.times.append(now / SECOND)
        seen.cwnd.append(connection.cwnd)
        seen.smss.append(connection.smss)
        seen.estimate.append(connection.erasure_rate or 0.0)
        seen.per.append(flows.per)
        seen.queue.append(len(flows.queue))
        if connection.counters.timeouts > counted:
            counted = connection.counters.timeouts
            seen.timeouts.append(now / SECOND)
    return seen
