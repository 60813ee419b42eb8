"""How much a flow of another transport harms one of CUBIC, beside how much a second flow of CUBIC does.

    python -m experiments.harm [--seeds N] [NAME ...]

Read first: Ware, Mukerjee, Seshan, Sherry, "Beyond Jain's fairness index: setting the bar for the deployment of
congestion control algorithms", HotNets 2019. Harm to a figure that should be large is the share of it that is lost, and
to one that should be small the share that the other flow has added: 0 is none, 1 is all. The bar for a newcomer is the
harm that CUBIC does to itself.

Virtual time (tier `model`), the paths and flows of `experiments/transports`, seeds 1 to N.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final

from experiments.transports import Bottleneck, run
from testbed.cli.app import status_of
from testbed.papers.report import table

INCUMBENT: Final = "modern"
#: transports of their own TCP: QUIC has no place on these paths
NEWCOMERS: Final = (INCUMBENT, "bbr3", "prague", "lt-tcp", "sack-eln")
DURATION_S: Final = 30.0
WARMUP_S: Final = 10.0

#: a BDP is 33 packets
PATHS: Final[dict[str, tuple[str, Bottleneck]]] = {
    name: (
        f"10 Mbit/s, 40 ms, {text}",
        Bottleneck(rate_bps=10_000_000, rtt_ns=40_000_000, queue=queue, queue_options={"limit_packets": limit_packets}),
    )
    for name, text, queue, limit_packets in (
        ("one-bdp", "a BDP of buffer", "drop-tail", 33),
        ("five-bdp", "five BDPs of buffer", "drop-tail", 165),
        ("dualpi2", "`dualpi2`", "dualpi2", 500),
    )
}


def lost(alone: float, beside: float) -> float:
    """Return the harm to a figure that should be large."""
    return (alone - beside) / alone


def added(alone: float, beside: float) -> float:
    """Return the harm to a figure that should be small."""
    return (beside - alone) / beside if beside else 0.0


def measure(path: Bottleneck, newcomer: str, seed: int) -> tuple[float, float]:
    """Return the harm of a flow to one of CUBIC: to its goodput, and to the 99th percentile of its waits."""
    alone = run(path, [INCUMBENT], seed=seed, duration_s=DURATION_S, warmup_s=WARMUP_S).flows[0]
    beside = run(path, [INCUMBENT, newcomer], seed=seed, duration_s=DURATION_S, warmup_s=WARMUP_S).flows[0]
    return lost(alone.goodput_bps, beside.goodput_bps), added(alone.wait_p99_ms, beside.wait_p99_ms)


def _range(values: Sequence[float]) -> str:
    text = f"{median(values):.2f}"
    return text if len(values) < 2 else f"{text} ({min(values):.2f} to {max(values):.2f})"


def rows(names: Sequence[str], seeds: int) -> Iterator[list[str]]:
    """Yield a row for each path and newcomer."""
    for name in names:
        text, path = PATHS[name]
        for newcomer in NEWCOMERS:
            harms = [measure(path, newcomer, seed) for seed in range(1, seeds + 1)]
            yield [text, f"`{newcomer}`", *(_range(values) for values in zip(*harms, strict=True))]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="The harm of other transports to CUBIC, for docs/referee.md.")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PATHS))
    arguments = parser.parse_args()
    for name in arguments.names:
        if name not in PATHS:
            parser.error(f"no path {name}: must be one of {', '.join(PATHS)}")
    if arguments.seeds < 1:
        parser.error(f"--seeds {arguments.seeds}: must be 1 or more")
    heads = ["path", "beside CUBIC", "harm to its goodput", "harm to its waits, 99 %"]
    for line in table(heads, rows(arguments.names or list(PATHS), arguments.seeds)):
        print(line, flush=True)


if __name__ == "__main__":
    sys.exit(status_of(main))
