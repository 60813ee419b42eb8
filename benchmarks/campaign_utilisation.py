"""Does a campaign of short runs use all cores, and how long does its index take to open?

    .venv/bin/python -m benchmarks.campaign_utilisation [--runs N] [--workers N] [--bytes N]

A campaign of two points (without SLACP and with it, 5 % of the frames lost) on tier `model`, by the command in a
process of its own. Utilisation is the processor time of the command and its workers over wall clock times workers, from
the start of the command to its end: interpreter, plan and results included. The machine must do nothing else. Opening
the index is `read_campaign`, as reports do it: plan, index, a look at the folders of all runs; the median of five.
Exit status 1 where utilisation is below 90 % or the index takes a second.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from common.compiled import state
from testbed.campaigns.processes import cores
from testbed.reports.numbers import read_campaign
from tests.harness.campaigns import campaign_file

WANTED = 0.9
WANTED_OPEN_S = 1.0
_OPENINGS = 5


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=1000, help="of the whole campaign, an even number")
    parser.add_argument("--workers", type=int, default=cores())
    parser.add_argument("--bytes", type=int, default=1_000_000, help="of each transfer")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        base = Path(scratch)
        scenario = {
            "name": "short",
            "tier": "model",
            "channel": {"rate_bps": 2_000_000, "delay_ms": 25, "per": 0.05},
            "workloads": [{"kind": "bulk", "bytes": options.bytes}],
            "trace": False,
        }
        file = campaign_file(base, scenario=scenario, seeds={"count": options.runs // 2})
        words = [sys.executable, "-P", "-m", "testbed", "campaign", str(file), "--out", str(base / "out")]
        began = time.monotonic()
        process = subprocess.Popen([*words, "--workers", str(options.workers)], stdout=subprocess.DEVNULL)
        # with the time of the workers, which the command has waited for
        _, status, used = os.wait4(process.pid, 0)
        wall_s = time.monotonic() - began
        if status:
            return 2
        processor_s = used.ru_utime + used.ru_stime
        share = processor_s / (wall_s * options.workers)
        print(f"cores {state()}; {options.runs} runs in {wall_s:.1f} s, {options.runs / wall_s:.0f} runs/s")
        print(
            f"processors {processor_s:.1f} s of {options.workers} x {wall_s:.1f} s: {share:.1%} (wanted {WANTED:.0%})"
        )
        opened_s = median(_opening_s(base / "out") for _ in range(_OPENINGS))
        print(f"index of {options.runs} runs opens in {opened_s:.3f} s (below {WANTED_OPEN_S:.0f} s wanted)")
    return 0 if share >= WANTED and opened_s < WANTED_OPEN_S else 1


def _opening_s(folder: Path) -> float:
    began = time.monotonic()
    assert read_campaign(folder).complete
    return time.monotonic() - began


if __name__ == "__main__":
    sys.exit(main())
