"""How many data packets per second the simulator delivers on one core, and how many ns-3 does.

    .venv/bin/python -m benchmarks.simulator [--seconds S] [--queue drop-tail|red] [--per P] [--repetitions N]
                                             [--seed N] [--set OPTION=VALUE] [--ns3] [--json]

The LT-TCP paper's bottleneck: ten bulk flows (Reno's windows, SACK, no timestamps, 500-byte segments) over 10 Mbit/s
and 20 ms, a queue of 500 packets, drop-tail or RED with ECN (75 and 225), access wires of 100 Mbit/s, a last hop that
loses data packets with probability P. Time is that of the simulation alone, without building the network: on the wall,
and of the processor, which other programs on the core do not lengthen. A delivered packet is 500 octets that have
reached the application in order.

`--ns3` runs ns-3 (Debian's libns3-dev) in turn with ours on the same core, with our options (`same`) and with its own
(`linux`): benchmarks/ns3_lt_tcp.cc says what is what.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from benchmarks.common import Column, Results, parser, spread, whole
from channel.errors.bernoulli import Bernoulli
from common.compiled import IS_COMPILED, state
from common.units import MS, SECOND
from hosts.tcp.config import TcpConfig
from linklayer.queues import Queue, QueueContext
from linklayer.queues.drop_tail import DropTail
from linklayer.queues.red import Red, RedOptions
from testbed.model.topologies import Dumbbell, DumbbellConfig
from testbed.model.virtual_clock import VirtualClock
from testbed.scenario.run_plan import make_rng

FLOWS = 10
SEGMENT_BYTES = 500
#: delivered data packets per second that fadelab wants of its simulator without losses, and times ns-3's
TARGET, TARGET_RATIO = (560_000, 12) if IS_COMPILED else (35_000, 2)
#: for each flow to start on its own
STAGGER_NS = 10 * MS

SOURCE = Path(__file__).with_name("ns3_lt_tcp.cc")
PROGRAM = Path(__file__).parent.parent / ".build" / "benchmarks" / "ns3_lt_tcp"
HEADER = Path("/usr/include/ns3/core-module.h")
LIBRARIES = ("applications", "internet", "point-to-point", "traffic-control", "network", "core")
COLUMNS = {
    "simulator": Column(""),
    "median_packets_per_cpu_s": Column("median", ","),
    "min_packets_per_cpu_s": Column("min", ","),
    "max_packets_per_cpu_s": Column("max", ","),
    "packets_per_wall_s": Column("on the wall", ","),
    "ours_to_this": Column("ours to it", ".2f"),
    "goodput_bps": Column("goodput Mbit/s", ".3f", 1e-6),
    "events_per_packet": Column("events/packet", ".2f"),
}


@dataclass(frozen=True, slots=True)
class Sample:
    """One run: data packets delivered, bit/s of virtual time, events, and the seconds it took."""

    packets: int
    goodput_bps: float
    events: int
    wall_s: float
    cpu_s: float


def make_queue(name: str, seed: int) -> Queue:
    """Return the queue in front of the bottleneck."""
    if name == "drop-tail":
        return DropTail(limit_packets=500)
    packet_ns = 8 * (SEGMENT_BYTES + 40) * SECOND // DumbbellConfig().bottleneck_bps
    rng = make_rng(seed, "red")
    options = RedOptions(min_packets=75, max_packets=225, limit_packets=500, mark_above=True)
    return Red(options, QueueContext(rng=rng, packet_time_ns=packet_ns))


def make_tcp(options: argparse.Namespace) -> TcpConfig:
    """Return our TCP. Raises ValueError for what `--set` should not have said."""
    words = (pair.partition("=") for pair in options.set)
    plain = TcpConfig().but(
        mss=SEGMENT_BYTES,
        timestamps=False,
        ecn=options.queue == "red",
        receive_buffer=1 << 20,
        send_buffer=1 << 20,
    )
    return plain.but(**{name: json.loads(value) for name, _, value in words})


def simulate(options: argparse.Namespace) -> Sample:
    """Run ours once."""
    clock = VirtualClock()
    per, seed = options.per, options.seed
    network = Dumbbell(
        clock,
        DumbbellConfig(pairs=FLOWS),
        seed=seed,
        queue=make_queue(options.queue, seed),
        last_hop=(lambda i: Bernoulli(per, make_rng(seed, "last hop", str(i)))) if per else None,
    )
    _, counters = network.send_bulk(make_tcp(options), [i * STAGGER_NS for i in range(FLOWS)])
    start, cpu_start = time.perf_counter(), time.process_time()
    clock.run(int(options.seconds * SECOND))
    wall_s, cpu_s = time.perf_counter() - start, time.process_time() - cpu_start
    nbytes = sum(counter.nbytes for counter in counters)
    return Sample(nbytes // SEGMENT_BYTES, 8 * nbytes / options.seconds, clock.scheduled, wall_s, cpu_s)


def refuse(message: str) -> NoReturn:
    """End with one line."""
    print(message, file=sys.stderr)
    sys.exit(2)


def build_ns3() -> None:
    """Compile the program for ns-3, if that is not done. Ends with one line when it cannot be."""
    if not HEADER.exists():
        refuse("ns-3 is not installed: run `apt-get install libns3-dev`, or leave --ns3 away")
    if PROGRAM.exists() and PROGRAM.stat().st_mtime > SOURCE.stat().st_mtime:
        return
    PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    libraries = [f"-lns3-{name}" for name in LIBRARIES]
    command = ["g++", "-std=c++17", "-O2", str(SOURCE), "-o", str(PROGRAM), *libraries]
    if subprocess.run(command, check=False).returncode:
        refuse(f"{SOURCE.name} does not compile with this ns-3: it is written for Debian 12's, 3.37")


def run_ns3(options: argparse.Namespace, tcp: str) -> Sample:
    """Run ns-3 once."""
    words = {"tcp": tcp, "queue": options.queue, "per": options.per, "seconds": options.seconds, "seed": options.seed}
    command = [str(PROGRAM), f"--flows={FLOWS}", f"--segment-bytes={SEGMENT_BYTES}"]
    command += [f"--{name}={word}" for name, word in words.items()]
    return Sample(**json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def figures(runs: list[Sample]) -> dict[str, Any]:
    """Return the row of one simulator."""
    first = runs[0]
    return {
        **spread("packets_per_cpu_s", [run.packets / run.cpu_s for run in runs]),
        "packets_per_wall_s": round(statistics.median(run.packets / run.wall_s for run in runs)),
        "packets": first.packets,
        "goodput_bps": round(first.goodput_bps),
        "events_per_packet": round(first.events / max(1, first.packets), 2),
    }


def main() -> None:
    """Measure and print."""
    options_of = parser(__doc__, repetitions=5)
    options_of.add_argument("--seconds", type=whole(1), default=200, help="virtual time of a run")
    options_of.add_argument("--queue", choices=("drop-tail", "red"), default="drop-tail")
    options_of.add_argument("--per", type=float, default=0.0, help="losses of the last hop")
    options_of.add_argument(
        "--set", action="append", default=[], metavar="OPTION=VALUE", help="of our TCP, as ack_every=1"
    )
    options_of.add_argument("--ns3", action="store_true", help="compare with ns-3")
    options = options_of.parse_args()
    try:
        make_tcp(options)
    except ValueError as error:
        options_of.error(f"--set takes an option of hosts/tcp/config.py and its value in JSON: {error}")
    if options.ns3:
        build_ns3()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

    samples: dict[str, list[Sample]] = {}
    for _ in range(options.repetitions):
        samples.setdefault("fadelab", []).append(simulate(options))
        if options.ns3:
            for tcp in ("same", "linux"):
                samples.setdefault(f"ns-3 {tcp}", []).append(run_ns3(options, tcp))

    unit = (
        f"delivered data packets/s of one core, {FLOWS} flows, {options.queue}, PER {options.per:g}, "
        f"{options.seconds} s of virtual time, cores {state()} (wanted: {TARGET:,}, and {TARGET_RATIO} x ns-3)"
    )
    results = Results(options, "model", unit, COLUMNS)
    rows = {name: figures(runs) for name, runs in samples.items()}
    for name, row in rows.items():
        ratio = rows["fadelab"]["median_packets_per_cpu_s"] / row["median_packets_per_cpu_s"]
        results.add(simulator=name, **row, ours_to_this=round(ratio, 2))
    results.finish(target_packets_per_s=TARGET, target_ratio=TARGET_RATIO)


if __name__ == "__main__":
    main()
