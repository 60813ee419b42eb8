"""A slow sweep of SNR on tier `vusrp`: modes chosen frame by frame, beside fixed modes.

    .venv/bin/python -m benchmarks.modes_sweep FILE.jsonl [--seeds N ...] [--modes MODE ...] [--traffic tcp|udp]

A mode is `auto`, or a modulation and a code, as in qam16/secded7264, at the highest `channel.rate_bps` that its radio
carries, and the rest is `scenarios/modes.yaml` without its fading. TCP is a kernel's bulk transfer; UDP is always on,
at more than any mode carries, and goes over the link's reliable channel, so that no TCP's timeouts are measured. Each
run becomes a line of the file, with its goodput over the whole sweep and its late events; the runs take real time.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

from flowgraphs.phys import make_phy
from testbed.paths import root
from testbed.scenario.file import load

SCENARIO = "scenarios/modes.yaml"
#: the sweep (dB), its steps, and how long each lasts
FIRST_DB, LAST_DB, STEP_DB, STEP_S = 8.0, 30.0, 0.5, 1
DURATION_S = round((LAST_DB - FIRST_DB) / STEP_DB + 2) * STEP_S
#: the modes whose mean over the sweep is highest by the measured curves, and the sturdiest that reaches 8 dB
FIXED = ("bpsk/secded7264", "qpsk/secded7264", "qpsk/none", "qam16/secded7264", "qam16/none", "qam64/secded7264")


def settings(mode: str, traffic: str) -> list[str]:
    """Return what a run sets in the scenario."""
    scenario = load(root() / SCENARIO)
    steps = range(1, round((LAST_DB - FIRST_DB) / STEP_DB) + 1)
    changes = [{"at_s": step * STEP_S, "set": {"channel.snr_db": FIRST_DB + step * STEP_DB}} for step in steps]
    chosen = [
        "channel.fading=null",
        f"channel.snr_db={FIRST_DB}",
        f"changes={json.dumps(changes)}",
    ]
    if mode != "auto":
        modulation, fec = mode.split("/")
        rate_sps, nbytes = scenario.radio.rate_sps, scenario.max_frame_bytes
        samples = make_phy("ofdm", rate_sps=rate_sps, modulation=modulation, fec=fec).frame_samples(nbytes)
        chosen += [
            "radio.modes=off",
            f"radio.modulation={modulation}",
            f"radio.fec={fec}",
            f"channel.rate_bps={int(nbytes * 8 * rate_sps / samples)}",
        ]
    if traffic == "udp":
        chosen += [
            "link.fast.protocols=[]",
            "workloads=[{kind: onoff-udp, off_ms: 0, rate_bps: 3e6, packet_bytes: 1500}]",
        ]
    return [*chosen, f"workloads.0.duration_s={DURATION_S}"]


def run(mode: str, seed: int, traffic: str) -> dict[str, Any]:
    """Make one run; return its figures. Raises CalledProcessError."""
    with TemporaryDirectory() as folder:
        command = [str(root() / "fadelab"), "run", str(root() / SCENARIO), "--seed", str(seed), "--out", folder]
        for setting in settings(mode, traffic):
            command += ["--set", setting]
        subprocess.run(command, check=True, stdout=sys.stderr)
        [summary] = Path(folder).glob("*/summary.json")
        return {"mode": mode, "seed": seed, "traffic": traffic, "summary": json.loads(summary.read_text())}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the mean goodput of each mode."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--modes", nargs="+", default=["auto", *FIXED])
    parser.add_argument("--traffic", choices=("tcp", "udp"), default="tcp")
    options = parser.parse_args(arguments)
    for seed in options.seeds:
        for mode in options.modes:
            with options.file.open("a") as file:
                file.write(json.dumps(run(mode, seed, options.traffic)) + "\n")
    show(options.file)


def show(file: Path) -> None:
    """Print the mean goodput of each mode."""
    goodputs: dict[tuple[str, str], list[float]] = {}
    for line in file.read_text().splitlines():
        row = json.loads(line)
        goodputs.setdefault((row["traffic"], row["mode"]), []).append(row["summary"]["goodput_bps"])
    for (traffic, mode), each in goodputs.items():
        print(f"{traffic} {mode}: {fmean(each) / 1e6:.3f} Mbit/s of {len(each)} runs")


if __name__ == "__main__":
    main()
