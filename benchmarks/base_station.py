"""Snoop with kernel TCP in real time: `sudo .venv/bin/python -m benchmarks.base_station`.

A transfer from the fixed host to the mobile one across 2 Mbit/s, 5 ms each way, tier `emulated`, bit errors in both
directions, windows of 32 KB; Linux's Reno with SACK off and on; without help and with each scheme. Printed per error
spacing, TCP and scheme: median goodput over the seeds, its ratio to no help, what TCP itself sent again, and what two
packet captures show (tests/harness/captures.py): how many dupacks came over the air, how many the base station passed
on, and how many of these were for a segment the air had taken and that was not acknowledged yet.

A run that did not keep the clock does not count and is made again, three times at most.
"""

import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.common import Column, Results, parser, run_on_time
from testbed.live.capture import capture_path
from testbed.results.summary import Summary
from testbed.scenario.schema import Scenario
from tests.harness.captures import Evidence, evidence, lan_capture

PORT = 5001
TCPS = ("reno-nosack", "reno")
SCHEMES = ("none", "ll", "ll-smart", "snoop", "snoop-smart")
SPACINGS = (65_536, 16_384)
COLUMNS = {
    "case": Column(""),
    "goodput_bps": Column("Mbit/s", ".2f", 1e-6),
    "times_none": Column("x none", ".2f"),
    "resent_by_tcp": Column("TCP resent"),
    "timeouts": Column("timeouts"),
    "lost": Column("lost"),
    "dupacks_heard": Column("dupacks"),
    "dupacks_passed": Column("passed"),
    "passed_during_repair": Column("in repair"),
}


def scenario(scheme: str, tcp: str, spacing: int, seed: int, duration_s: float) -> Scenario:
    """Data to the mobile host; segments of 1400 octets, as the paper's."""
    return Scenario.model_validate(
        {
            "name": "base-station",
            "seed": seed,
            "mtu": 1440,
            "tcp": tcp,
            "receive_buffer_bytes": 32_768,
            "capture": True,
            "trace": False,
            "link": {"scheme": scheme},
            "channel": {
                "rate_bps": 2_000_000,
                "delay_ms": 5,
                "errors": {"model": "exponential", "mean_spacing_bytes": spacing},
            },
            "workloads": [
                {"kind": "bulk", "flow": "down", "direction": "down", "duration_s": duration_s, "port": PORT}
            ],
        }
    )


def measure(wanted: Scenario) -> tuple[Summary, Evidence]:
    """Run once, on time; return the result and what the captures show."""
    with tempfile.TemporaryDirectory() as folder:
        lan = Path(folder) / "lan.pcapng"
        with lan_capture(lan):
            summary = run_on_time(wanted, Path(folder))
        assert summary.folder is not None
        return summary, evidence(capture_path(Path(summary.folder), "down"), lan, PORT)


def row(summaries: Sequence[tuple[Summary, Evidence]], bare_bps: float | None) -> dict[str, Any]:
    """What one combination has shown."""
    goodput_bps = median(summary.goodput_bps for summary, _ in summaries)
    seen = [asdict(found) for _, found in summaries]
    windows = [each.pop("window") for each in seen]
    return {
        "goodput_bps": goodput_bps,
        "window_bytes": max(windows),
        "goodputs_bps": [summary.goodput_bps for summary, _ in summaries],
        "times_none": None if bare_bps is None else goodput_bps / bare_bps,
        "timeouts": sum(summary.timeouts for summary, _ in summaries),
        **{name: sum(each[name] for each in seen) for name in seen[0]},
    }


def main() -> None:
    """Measure and print."""
    options_of = parser(__doc__, repetitions=3)
    options_of.add_argument("--seconds", type=float, default=20.0, help="of each run (default 20)")
    options_of.add_argument("--schemes", nargs="+", choices=SCHEMES, default=list(SCHEMES), metavar="NAME")
    options = options_of.parse_args()
    seeds = range(options.seed, options.seed + options.repetitions)
    results = Results(options, "emulated", "Mbit/s of goodput and numbers of segments, sums of all seeds", COLUMNS)
    for spacing, tcp in product(SPACINGS, TCPS):
        bare_bps: float | None = None
        for scheme in options.schemes:
            runs = [measure(scenario(scheme, tcp, spacing, seed, options.seconds)) for seed in seeds]
            found = results.add(case=f"1 error in {spacing // 1024} KB, {tcp}, {scheme}", **row(runs, bare_bps))
            if scheme == "none":
                bare_bps = found["goodput_bps"]
    results.finish()


if __name__ == "__main__":
    main()
