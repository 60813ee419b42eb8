"""DDA and CC beside Linux's TCP: `sudo .venv/bin/python -m benchmarks.delayed_dupacks`.

A bulk transfer down an emulated link with ARQ that delivers out of order, 2 Mbit/s and 10 ms each way, which loses
frames in both directions; Linux's CUBIC with and without tolerance of reordering. All rows have the same losses by
seed. The rows of `cc` have ECN and a queue that marks.
"""

import argparse
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.common import Column, Results, parser, run_on_time, whole
from testbed.scenario.schema import Scenario

#: what the sender tolerates, and its profile
TCPS = {
    "RACK, learning (Linux today)": "cubic",
    "RACK, static": "cubic-strict",
    "three dupacks (no SACK)": "cubic-nosack",
}
#: filters, whether with ECN, and the first dupack that waits
HELPS: dict[str, tuple[list[str], bool, int]] = {
    "none": ([], False, 3),
    "dda": (["dda"], False, 3),
    "dda from the first": (["dda"], False, 1),
    "none, ECN": ([], True, 3),
    "cc": (["cc"], True, 3),
    "cc from the first": (["cc"], True, 1),
}


def scenario(tcp: str, help_: str, seed: int, options: argparse.Namespace) -> Scenario:
    """One transfer of one TCP with one filter."""
    filters, ecn, first = HELPS[help_]
    queue: dict[str, Any] = {"kind": "drop-tail", "limit_packets": options.buffer}
    if ecn:
        mark = options.buffer * 2 // 3
        queue |= {"kind": "red", "min_packets": mark, "max_packets": mark, "weight": 1, "mark_above": True}
    return Scenario.model_validate(
        {
            "name": "delayed-dupacks",
            "seed": seed,
            "tcp": f"{tcp}-ecn" if ecn else tcp,
            "trace": False,
            "link": {"scheme": "arq", "filters": filters, "hold": {"dupacks": first}, "queue": queue},
            "channel": {"rate_bps": options.rate, "delay_ms": options.delay_ms, "per": options.per},
            "workloads": [{"kind": "bulk", "direction": "down", "duration_s": options.seconds}],
        }
    )


def main() -> None:
    """Measure and print."""
    options_of = parser(__doc__, repetitions=3)
    options_of.add_argument("--per", type=float, default=0.05, help="frame loss, each way")
    options_of.add_argument("--seconds", type=float, default=20.0, help="of each transfer")
    options_of.add_argument("--rate", type=whole(1), default=2_000_000, help="of the link, bit/s")
    options_of.add_argument("--delay-ms", type=float, default=10.0, help="of the link, one way")
    options_of.add_argument("--buffer", type=whole(3), default=45, help="of the IP queue, packets")
    options_of.add_argument("--only", default="", help="rows of TCPs with this word")
    options = options_of.parse_args()
    columns = {
        "tcp": Column("Linux's CUBIC"),
        "help": Column("filter"),
        "goodput_bps": Column("Mbit/s, median", ".3f", 1e-6),
        "least_bps": Column("least", ".3f", 1e-6),
        "ratio": Column("to none", ".2f"),
        "retransmissions": Column("sent again"),
        "timeouts": Column("timeouts"),
    }
    results = Results(options, "emulated", "goodput over link ARQ that delivers out of order", columns)
    with tempfile.TemporaryDirectory(prefix="delayed-dupacks-") as folder:
        for words, tcp in TCPS.items():
            if options.only not in words:
                continue
            plain: dict[bool, float] = {}
            for help_, (_, ecn, _) in HELPS.items():
                runs = [
                    run_on_time(scenario(tcp, help_, seed, options), Path(folder)).flows[0]
                    for seed in range(options.seed, options.seed + options.repetitions)
                ]
                goodput_bps = median(run.goodput_bps for run in runs)
                plain.setdefault(ecn, goodput_bps)
                results.add(
                    tcp=words,
                    help=help_,
                    goodput_bps=goodput_bps,
                    least_bps=min(run.goodput_bps for run in runs),
                    ratio=goodput_bps / plain[False],
                    retransmissions=median(run.retransmits for run in runs),
                    timeouts=median(run.timeouts for run in runs),
                )
    results.finish()


if __name__ == "__main__":
    main()
