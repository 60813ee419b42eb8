"""Packets per second from TAP to TAP over the emulated tier: `sudo .venv/bin/python -m benchmarks.tap_path`.

Two hosts, two station processes with SLACP, a fast lossless medium; four kernel TCP flows (cubic) fill it. Reported
are IP packets carried by the link per second, data and ACKs, the median of some runs. All of it shares this machine's
cores: both stations, both hosts, the kernel. Target: 15,000 packets/s.
"""

import json
import tempfile
from pathlib import Path
from statistics import median

import click

from testbed.running import run_once
from testbed.scenario.schema import Scenario

TARGET_PPS = 15_000


def scenario(scheme: str, seconds: float, rate_bps: int, seed: int) -> Scenario:
    """A link that is never the bottleneck."""
    return Scenario.model_validate(
        {
            "name": "tap-path",
            "seed": seed,
            "trace": False,
            "link": {"scheme": scheme, "ip_queue_bytes": 2_000_000, "slacp": {"window": 8192}},
            "channel": {"rate_bps": rate_bps, "delay_ms": 1},
            "workloads": [{"kind": "bulk", "duration_s": seconds, "flows": 4}],
            "timing": {"late_bound_ms": 20},
        }
    )


@click.command()
@click.option("--seconds", default=5.0, show_default=True)
@click.option("--runs", default=5, show_default=True)
@click.option("--rate", "rate_bps", default=1_000_000_000, show_default=True, help="Rate of the medium, bit/s.")
@click.option("--json", "json_", is_flag=True)
def main(seconds: float, runs: int, rate_bps: int, json_: bool) -> None:
    """Measure the path with SLACP and bare."""
    figures: dict[str, list[float]] = {"slacp": [], "none": []}
    with tempfile.TemporaryDirectory() as folder:
        for run in range(runs):
            for scheme, rates in figures.items():
                summary = run_once(scenario(scheme, seconds, rate_bps, run + 1), Path(folder), lambda progress: None)
                packets = sum(link.packets for link in summary.link.values())
                rates.append(packets / summary.duration_s)
    if json_:
        print(json.dumps({"target_pps": TARGET_PPS, **figures}))
        return
    for scheme, rates in figures.items():
        print(f"{scheme:6} {median(rates):8.0f} packets/s  ({min(rates):.0f} to {max(rates):.0f}, {runs} runs)")
    print(f"target {TARGET_PPS:8} packets/s with slacp")


if __name__ == "__main__":
    main()
