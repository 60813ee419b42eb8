"""The profile `modern` of the userspace TCP beside Linux's CUBIC: `sudo .venv/bin/python -m benchmarks.modern_tcp`.

A bulk transfer up across an emulated link without ARQ, 2 Mbit/s and 25 ms each way, which loses frames in both
directions. Both TCPs have the same losses: the seed gives each frame of a direction its fate by its number. For each
PER and seed Linux's run and ours come one after the other, so that a busy machine meets both.
"""

import argparse
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.common import Column, Results, parser, run_on_time, whole
from testbed.scenario.schema import Scenario

LINUX = "cubic"
#: how much less than Linux's median goodput ours may be, and how much more
WANTED = 0.15


def scenario(tcp: str, per: float, seed: int, options: argparse.Namespace) -> Scenario:
    """One transfer of one TCP."""
    return Scenario.model_validate(
        {
            "name": "modern-tcp",
            "seed": seed,
            "tcp": tcp,
            "trace": False,
            "link": {"scheme": "none"},
            "channel": {"rate_bps": options.rate, "delay_ms": options.delay_ms, "per": per},
            "workloads": [{"kind": "bulk", "direction": "up", "duration_s": options.seconds}],
        }
    )


def main() -> None:
    """Measure and print."""
    options_of = parser(__doc__, repetitions=5)
    options_of.add_argument("--tcp", nargs="+", default=["user:modern"], help="TCPs beside Linux's CUBIC")
    options_of.add_argument("--per", type=float, nargs="+", default=[0.01, 0.03, 0.05], help="frame loss, each way")
    options_of.add_argument("--seconds", type=float, default=20.0, help="of each transfer")
    options_of.add_argument("--rate", type=whole(1), default=2_000_000, help="of the link, bit/s")
    options_of.add_argument("--delay-ms", type=float, default=25.0, help="of the link, one way")
    options = options_of.parse_args()
    columns = {
        "tcp": Column("TCP"),
        "per": Column("PER", "g"),
        "seed": Column("seed"),
        "goodput_bps": Column("Mbit/s", ".3f", 1e-6),
        "ratio": Column("to Linux", ".2f"),
        "retransmissions": Column("sent again"),
        "timeouts": Column("timeouts"),
    }
    results = Results(options, "emulated", f"Mbit/s of goodput (wanted: medians within {WANTED:.0%})", columns)
    with tempfile.TemporaryDirectory(prefix="modern-tcp-") as folder:
        for per in options.per:
            found: dict[str, list[float]] = {}
            for seed in range(options.seed, options.seed + options.repetitions):
                for tcp in (LINUX, *options.tcp):
                    [flow] = run_on_time(scenario(tcp, per, seed, options), Path(folder)).flows
                    goodputs = found.setdefault(tcp, [])
                    goodputs.append(flow.goodput_bps)
                    results.add(
                        tcp=tcp,
                        per=per,
                        seed=seed,
                        goodput_bps=flow.goodput_bps,
                        ratio=flow.goodput_bps / found[LINUX][-1],
                        retransmissions=flow.retransmits,
                        timeouts=flow.timeouts,
                    )
            for tcp, goodputs in found.items():
                goodput_bps = median(goodputs)
                ratio = goodput_bps / median(found[LINUX])
                results.add(tcp=tcp, per=per, seed="median", goodput_bps=goodput_bps, ratio=ratio)
    results.finish(wanted=WANTED)


if __name__ == "__main__":
    main()
