"""What each choice and each improvement brings: two tables, as docs/papers/lt-tcp.md has them.

    python -m experiments.lt_tcp.sensitivity [--seconds 200] [--seeds 1 2 3] [--only sensitivity]

`sensitivity`: the paper's schemes with one choice changed that the paper does not state. `improvements`: our LT-TCP
without one of its improvements, and the paper's beside it. Means over the seeds, of all ten flows.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, Final, NamedTuple

from common.units import SECOND
from experiments.lt_tcp import jobs
from experiments.lt_tcp.cells import OURS
from testbed.cli.app import status_of
from testbed.papers.report import table


class Change(NamedTuple):
    """One choice changed: the network's parameters, and options of all hosts' TCP."""

    words: str
    network: Mapping[str, Any] = {}
    tcp: Mapping[str, Any] = {}


SENSITIVITY: Final[Sequence[Change]] = (
    Change("as published"),
    Change("delayed ACKs, 200 ms", {"delayed_ack_ms": 200}),
    Change("delayed ACKs, 100 ms (ns-2's `DelAck`)", {"delayed_ack_ms": 100}),
    Change("ACKs are lost, too", {"lossy_acks": True}),
    Change("least RTO 200 ms (ns-2 from October 2004 on)", {"min_rto_ms": 200}),
    Change("first RTO 1 s, at most 60 s (RFC 6298)", tcp={"initial_rto_ns": SECOND, "max_rto_ns": 60 * SECOND}),
    Change("every segment is timed", tcp={"time_one": False}),
    Change("all hops but the bottleneck without delay", {"access_delay_ms": 0}),
    Change("segments of 500 octets", {"segment_bytes": 500}),
    Change("RED drops above the upper threshold (RFC 3168)", {"red_mark_above": False}),
    Change("RED that is not gentle, and marks", {"red_gentle": False}),
    Change("RED's weight 0.0004 (ns-2's automatic one)", {"red_weight": 0.0004}),
    Change("FEC that suffices with 0.9", tcp={"fec_confidence": 0.9}),
    Change("FEC without a bound", tcp={"most_redundancy": 1.0}),
    Change("windows without losses do not count (equation 2)", tcp={"forget_losses": False}),
    Change("holes do not wait for FEC", tcp={"wait_for_fec": False}),
    Change("the window grows by present segments", tcp={"grow_by_full_segments": False}),
)
#: scheme and PER in percent
COLUMNS: Final = (
    *(("sack", per) for per in (10, 20, 50)),
    *(("lt-tcp-2005", per) for per in (0, 10, 30, 50)),
)

IMPROVEMENTS: Final[Sequence[Change]] = (
    Change("`lt-tcp`"),
    Change("the window stays in recovery", tcp={"grow_in_recovery": False}),
    Change("CWR once", tcp={"repeat_cwr": False}),
    Change("received segments make no room before FEC had its chance", tcp={"room_for_received": False}),
    Change("holes do not wait for FEC", tcp={"wait_for_fec": False}),
    Change("R for each duplicate ACK, without a count", tcp={"count_repairs": False}),
    Change("SACK's holes in place of the receiver's report", tcp={"count_by_report": False}),
    Change("lost repairs wait for the timer", tcp={"repair_again": False}),
    Change("the window grows by the ACK", tcp={"byte_counting": False}),
    Change("FEC that suffices with 0.99, as the paper's", tcp={"fec_confidence": 0.99}),
)
PERS_PCT: Final = (10, 30, 50)


def measure(scheme: str, per_pct: int, change: Change, seconds: int, seeds: Sequence[int]) -> tuple[float, float]:
    """Return goodput (Mbps) and timeouts of a flow in 1000 s, means over the seeds."""
    given = [f"{key}={str(value).lower()}" for key, value in change.network.items()]
    network = jobs.values([f"seconds={seconds}", *given])
    run = jobs.Run(scheme, per_pct, network, tuple(change.tcp.items()))
    samples = [run(seed) for seed in seeds]
    return (
        fmean(sample.value for sample in samples),
        fmean(sample.counts["timeouts"] for sample in samples) * 1000 / seconds,
    )


def sensitivity(seconds: int, seeds: Sequence[int]) -> Iterator[str]:
    """Yield the table of choices: goodput, timeouts."""
    rows = (
        (change.words, *(_entry(*measure(*column, change, seconds, seeds)) for column in COLUMNS))
        for change in SENSITIVITY
    )
    yield from table(["goodput (Mbps), timeouts", *(f"`{scheme}` {per} %" for scheme, per in COLUMNS)], rows)


def improvements(seconds: int, seeds: Sequence[int]) -> Iterator[str]:
    """Yield the table of improvements: goodput, timeouts."""
    rows = [(OURS, change) for change in IMPROVEMENTS] + [("lt-tcp-2005", Change("`lt-tcp-2005`"))]
    cells = (
        (change.words, *(_entry(*measure(scheme, per, change, seconds, seeds)) for per in PERS_PCT))
        for scheme, change in rows
    )
    yield from table(["goodput (Mbps), timeouts", *(f"{per} %" for per in PERS_PCT)], cells)


def _entry(goodput: float, timeouts: float) -> str:
    return f"{goodput:.3g}, {timeouts:.0f}"


TABLES: Final = {"sensitivity": sensitivity, "improvements": improvements}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m experiments.lt_tcp.sensitivity", description=__doc__)
    parser.add_argument("--seconds", type=int, default=200, help="of each run")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--only", choices=TABLES, help="one of the tables")
    arguments = parser.parse_args()
    for name, lines in TABLES.items():
        if arguments.only in (None, name):
            print("", *lines(arguments.seconds, arguments.seeds), sep="\n", flush=True)


if __name__ == "__main__":
    sys.exit(status_of(main))
