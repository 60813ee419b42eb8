"""Hostile packets at the packet filters of a base station, by the million, in virtual time.

    .venv/bin/python -m benchmarks.fuzz_filters [--packets N] [--seed N] [--only WORD] [--json]

The packets are shared between all filters, half of them as octets and half as objects; a part of each share are
forgeries in valid flows. In `tests/harness/`, `attacker.py` draws the packets, `checked.py` checks each of them behind
the filter, and `assault.py` has the valid flows that must not feel the attack. It ends with 1 when a filter broke a
rule, when a valid flow did not get its octets or less than 0.8 of what it gets without the attack, or when memory or
time per packet kept growing.
"""

import json
import sys
import time
from dataclasses import asdict
from typing import Any

from benchmarks.common import parser, whole
from tcpip.access import Access, Objects, Octets
from tests.harness.assault import TARGETS, Report, Target, assault
from tests.harness.checked import RuleBrokenError

#: of an attack's packets: on other flows only; forged ACKs in valid flows, too; forged data, too
SHARES = (("others", 0.8), ("forged ACKs", 0.1), ("forged data", 0.1))
#: of what valid flows get without the attack
LEAST_OCTETS = 0.8
#: octets held at any time, at most: the base station's 16 MB, and what the harness notes on each packet
MOST_HELD = 64 << 20
#: how much more is held, at most, in the second half of a run than in the first, and how much is neither here nor there
MOST_GROWTH, SLACK_BYTES = 1.5, 8 << 20
#: how much more time a packet takes, at most, in the last part than in the first, which begins with nothing in memory
MOST_SLOWER = 3.0


def options_of(kind: str) -> dict[str, Any]:
    """Network's options for a kind of attack: forgeries in a flow come slowly enough for the flow to go on."""
    if kind == "others":
        return {"gap_ns": 100_000}
    return {"gap_ns": 1_000_000, "forge": True, "forge_data": kind == "forged data"}


def complaints(kind: str, report: Report) -> list[str]:
    """What is wrong with a run, in words."""
    found: list[str] = []
    if kind != "forged data":
        found += report.broken
    if kind == "others" and report.octets < LEAST_OCTETS * report.calm_octets:
        found.append(f"valid flows got {report.octets} octets, {report.calm_octets} without the attack")
    half = len(report.footprints) // 2
    before, after = max(report.footprints[:half]), max(report.footprints[half:])
    if after > MOST_HELD or after > MOST_GROWTH * before + SLACK_BYTES:
        found.append(f"up to {before} octets were held in the first half, up to {after} in the second")
    if report.last_us > MOST_SLOWER * report.first_us:
        found.append(f"a packet took {report.first_us:.0f} us in the beginning and {report.last_us:.0f} us in the end")
    if report.idle_after_s is None:
        found.append("something was due for ever after the attack")
    return found


def attack(target: Target, access: Access, kind: str, packets: int, seed: int) -> dict[str, Any]:
    """Attack one filter; return the report with `wrong`, what is wrong."""
    try:
        # valid flows have the same losses with octets and with objects: one comparison does for both
        compare = kind == "others" and isinstance(access, Octets)
        report = assault(target, access, packets, time.process_time, seed=seed, compare=compare, **options_of(kind))
    except RuleBrokenError as error:
        return {"target": str(target), "access": type(access).__name__, "kind": kind, "wrong": [str(error)]}
    return {**asdict(report), "kind": kind, "wrong": complaints(kind, report)}


def main() -> None:
    """Attack and print."""
    options_of = parser(__doc__)
    options_of.add_argument("--packets", type=whole(1), default=1_000_000, help="hostile packets in all")
    options_of.add_argument("--only", default="", help="filters with this word in their name")
    options = options_of.parse_args()
    targets = [target for target in TARGETS if options.only in str(target)]
    if not targets:
        options_of.error(f"--only {options.only}: no such filter; there are {', '.join(map(str, TARGETS))}")
    share = options.packets // (2 * len(targets))
    if share < 1000:
        options_of.error(f"--packets {options.packets}: {2000 * len(targets)} at least")

    begun = time.monotonic()
    runs = []
    for target in targets:
        for access in (Octets(), Objects()):
            for kind, part in SHARES:
                run = attack(target, access, kind, round(share * part), options.seed)
                runs.append(run)
                print(line(run, time.monotonic() - begun), file=sys.stderr, flush=True)
    wrong = [f"{run['target']}, {run['access']}, {run['kind']}: {what}" for run in runs for what in run["wrong"]]
    summary = {
        "tier": "model",
        "seed": options.seed,
        "packets": sum(run.get("shots", 0) for run in runs),
        "wall_s": round(time.monotonic() - begun, 1),
        "virtual_s": round(sum(run.get("seconds", 0) for run in runs), 1),
        "most_held_bytes": max((max(run["footprints"]) for run in runs if "footprints" in run), default=0),
        "wrong": wrong,
    }
    if options.json:
        print(json.dumps({**summary, "runs": runs}))
    else:
        print("\n".join(f"{name}: {value}" for name, value in summary.items() if name != "wrong"))
        print("\n".join(wrong) or "nothing wrong")
    sys.exit(1 if wrong else 0)


def line(run: dict[str, Any], elapsed_s: float) -> str:
    """A run in a line."""
    head = f"{elapsed_s:6.0f} s  {run['target']:<32} {run['access']:<8}{run['kind']:<12}"
    if "volume" not in run:
        return f"{head} {run['wrong'][0]}"
    volume = run["volume"]
    return (
        f"{head}{run['shots']:>9,} packets {run['first_us']:4.0f} .. {run['last_us']:4.0f} us each, "
        f"holds up to {max(run['footprints']) / 1e6:.1f} MB, {run['footprints'][-1] / 1e6:.1f} in the end, "
        f"{volume['held_back']:,} held back, {volume['changed']:,} changed, "
        f"{volume['retransmissions']:,} retransmitted (one up to {volume['most_often']} times), "
        f"valid flows {run['octets'] / 1e6:.2f} of {run['calm_octets'] / 1e6:.2f} MB, {run['transfers']} transfers"
        f"{'' if not run['wrong'] else '  WRONG: ' + '; '.join(run['wrong'])}"
    )


if __name__ == "__main__":
    main()
