"""The measured figures of docs/transports.md.

    python -m experiments.transports [--seeds N] [NAME ...]

Virtual time, seeds 1 to N; interpreted, a seed takes about two minutes.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from experiments.transports import Bottleneck, FlowResult, Result, run
from testbed.cli.app import status_of
from testbed.papers.report import table


@dataclass(frozen=True, kw_only=True)
class Case:
    """Flows over a bottleneck, measured from `warmup_s` on."""

    name: str
    text: str
    path: Bottleneck
    profiles: tuple[str, ...]
    duration_s: float = 30
    warmup_s: float = 5


_DEEP: Final = Bottleneck(queue_options={"limit_packets": 200})
_SHALLOW: Final = Bottleneck(queue_options={"limit_packets": 10})
_LOSSY: Final = Bottleneck(queue_options={"limit_packets": 200}, per=0.01)
_L4S: Final = Bottleneck(rate_bps=40_000_000, rtt_ns=20_000_000, queue="dualpi2", queue_options={"limit_packets": 2000})
_FAST_LOSSY: Final = Bottleneck(rate_bps=20_000_000, queue_options={"limit_packets": 1000}, per=0.01)

CASES: Final = (
    *(
        Case(name=f"{name}-{profile}", text=text, path=path, profiles=(profile,), duration_s=duration_s)
        for name, text, path, duration_s in (
            ("deep", "2 Mbit/s, 50 ms, 200 packets of buffer", _DEEP, 30.0),
            ("shallow", "2 Mbit/s, 50 ms, 10 packets of buffer", _SHALLOW, 30.0),
            ("lossy", "2 Mbit/s, 50 ms, 1 % loss", _LOSSY, 30.0),
            ("fast-lossy", "20 Mbit/s, 50 ms, 1 % loss", _FAST_LOSSY, 15.0),
        )
        for profile in ("bbr3", "modern")
    ),
    Case(
        name="two",
        text="2 Mbit/s, 50 ms, 200 packets of buffer: two flows",
        path=_DEEP,
        profiles=("bbr3", "bbr3"),
        duration_s=60,
        warmup_s=20,
    ),
    *(
        Case(
            name=f"l4s-{'-'.join(profiles)}",
            text=f"40 Mbit/s, 20 ms, `dualpi2`: {' and '.join(profiles)}",
            path=_L4S,
            profiles=profiles,
            duration_s=15,
        )
        for profiles in (("prague",), ("prague", "modern"))
    ),
)


def _range(values: Sequence[float], form: str) -> str:
    low, high = f"{min(values):{form}}", f"{max(values):{form}}"
    return low if low == high else f"{median(values):{form}} ({low} to {high})"


def rows(case: Case, seeds: int) -> Iterator[list[str]]:
    """Yield a row for each flow of a case."""
    results: list[Result] = [
        run(case.path, case.profiles, seed=seed, duration_s=case.duration_s, warmup_s=case.warmup_s)
        for seed in range(1, seeds + 1)
    ]
    for number, profile in enumerate(case.profiles):
        flows: list[FlowResult] = [result.flows[number] for result in results]
        yield [
            case.text,
            f"`{profile}`",
            _range([flow.goodput_bps / 1e6 for flow in flows], ".2f"),
            _range([flow.wait_ms for flow in flows], ".1f"),
            _range([flow.wait_p99_ms for flow in flows], ".1f"),
            _range([float(flow.retransmits) for flow in flows], ".0f"),
        ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="The measured figures of docs/transports.md.")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(case.name for case in CASES))
    arguments = parser.parse_args()
    known = {case.name: case for case in CASES}
    for name in arguments.names:
        if name not in known:
            parser.error(f"no case {name}: must be one of {', '.join(known)}")
    chosen = [known[name] for name in arguments.names] or CASES
    heads = ["path", "profile", "goodput, Mbit/s", "wait, ms", "wait, 99 %, ms", "sent again"]
    for line in table(heads, (row for case in chosen for row in rows(case, arguments.seeds))):
        print(line)


if __name__ == "__main__":
    sys.exit(status_of(main))
