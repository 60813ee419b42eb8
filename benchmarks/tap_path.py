"""Packets per second from TAP to TAP over the emulated tier: `sudo .venv/bin/python -m benchmarks.tap_path`.

Two hosts, two station processes with SLACP, a fast lossless medium; four kernel TCP flows (cubic) fill it. Reported
are IP packets carried by the link per second, data and ACKs, the median of some runs. All of it shares this machine's
cores: both stations, both hosts, the kernel. Target: 15,000 packets/s.
"""

import tempfile
from pathlib import Path

from benchmarks.common import Column, Results, parser, spread, whole
from testbed.running import run_once
from testbed.scenario.schema import Scenario

TARGET_PPS = 15_000
COLUMNS = {
    "scheme": Column("scheme"),
    **{f"{name}_pps": Column(name) for name in ("median", "min", "max", "target")},
}


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


def main() -> None:
    """Measure the path with SLACP and bare."""
    options_of = parser(__doc__, repetitions=5)
    options_of.add_argument("--seconds", type=float, default=5.0, help="of each run (default 5)")
    options_of.add_argument("--rate", type=whole(1), default=1_000_000_000, help="of the medium, bit/s (default 10^9)")
    options = options_of.parse_args()
    rates: dict[str, list[float]] = {"slacp": [], "none": []}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.seed, options.seed + options.repetitions):
            for scheme, found in rates.items():
                made = scenario(scheme, options.seconds, options.rate, seed)
                summary = run_once(made, Path(folder), lambda progress: None)
                found.append(sum(link.packets for link in summary.link.values()) / summary.duration_s)
    results = Results(options, "emulated", "IP packets/s from TAP to TAP", COLUMNS)
    for scheme, found in rates.items():
        results.add(scheme=scheme, **spread("pps", found), target_pps=TARGET_PPS if scheme == "slacp" else None)
    results.finish()


if __name__ == "__main__":
    main()
