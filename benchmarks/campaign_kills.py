"""Kills a campaign at random times and resumes it: are the result files those of an undisturbed one?

    .venv/bin/python -m benchmarks.campaign_kills [--kills N] [--seed S]

Each kill is a new campaign, killed at a time that is uniform over the duration of the undisturbed one: the command
alone, or, every second time, with all its workers. Then the same command ends it. Exit status 1 if a file differs.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.harness.campaigns import campaign_file, result_files

#: 120 runs of 10 to 300 ms
CHANGES = {
    "sweep": {"grid": {"link.scheme": ["none", "slacp"], "workloads.0.bytes": [5_000, 100_000, 400_000]}},
    "seeds": {"count": 20},
}


def command(file: Path, out: Path) -> "subprocess.Popen[bytes]":
    """Start a campaign in a process group of its own."""
    words = [sys.executable, "-P", "-m", "testbed", "campaign", str(file), "--out", str(out), "--workers", "2"]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(words, stdout=quiet, stderr=quiet, start_new_session=True)


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=19)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as scratch:
        base = Path(scratch)
        file = campaign_file(base, **CHANGES)
        began = time.monotonic()
        assert command(file, base / "whole").wait() == 0
        whole_s = time.monotonic() - began
        expected = result_files(base / "whole")
        print(f"undisturbed: {whole_s:.1f} s, {len(expected)} result files", flush=True)
        differing = 0
        for kill in range(options.kills):
            out, after_s = base / f"out{kill}", rng.uniform(0, whole_s)
            process = command(file, out)
            time.sleep(after_s)
            done = len(list((out / "runs").iterdir())) if (out / "runs").is_dir() else 0
            if kill % 2:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
            killed = process.wait() < 0
            status = command(file, out).wait()
            same = status == 0 and result_files(out) == expected
            differing += not same
            what = "killed" if killed else "ended before the kill"
            print(
                f"{kill}: {what} after {after_s:.2f} s, {done} runs done: {'same' if same else 'DIFFERS'}", flush=True
            )
        print(f"{options.kills - differing} of {options.kills} campaigns have the same files")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
