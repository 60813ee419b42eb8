"""Hostile segments at LT-TCP's options, by the million, in virtual time.

    .venv/bin/python -m benchmarks.fuzz_lt_tcp [--segments N] [--seed N] [--json]

Half of them come from an attacker who does not know the flow's numbers, and half from one who does
(`tests/harness/fec_attack.py`). It ends with 1 when a connection raised or broke a rule, when a flow that was attacked
blindly did not get its octets, or got less than 0.6 of its goodput in peace.
"""

import json
import sys
import time
from typing import Any

from benchmarks.common import parser, whole
from tests.harness.fec_attack import Attack, Report, RuleBrokenError

#: of the goodput that a flow has in peace: the ACKs that answer strays (RFC 9293 section 3.10.7.4) share its path
LEAST_GOODPUT = 0.6
#: octets of a flow, and hostile segments at each of its events
NBYTES, PER_EVENT = 1_000_000, 20


def attack(seed: int, blind: bool, segments: int) -> dict[str, Any]:
    """Attack flows one after another until so many segments were sent; return the sums, with `wrong`."""
    shots = most_held = flows = 0
    octets, seconds, calm_seconds = 0, 0.0, 0.0
    wrong: list[str] = []
    while shots < segments:
        flows += 1
        seed += 1
        try:
            if blind and flows <= 10:
                calm_seconds += Attack(seed, blind=True).run(NBYTES, 0, 0).virtual_s
            report: Report = Attack(seed, blind=blind).run(NBYTES, segments - shots, PER_EVENT)
        except Exception as error:
            wrong.append(f"seed {seed}: {type(error).__name__}: {error}")
            if not isinstance(error, RuleBrokenError):
                break
            continue
        shots += report.shots
        octets += report.octets
        most_held = max(most_held, report.most_held)
        if blind and flows <= 10:
            seconds += report.virtual_s
    if blind and calm_seconds < LEAST_GOODPUT * seconds:
        wrong.append(f"ten flows took {seconds:.1f} s, {calm_seconds:.1f} s without the attack")
    return {
        "kind": "blind" if blind else "forged",
        "segments": shots,
        "flows": flows,
        "octets": octets,
        "most_held_bytes": most_held,
        "ten_flows_s": round(seconds, 1),
        "ten_flows_in_peace_s": round(calm_seconds, 1),
        "wrong": wrong,
    }


def main() -> None:
    """Attack and print."""
    options_of = parser(__doc__)
    options_of.add_argument("--segments", type=whole(1000), default=1_000_000, help="hostile segments in all")
    options = options_of.parse_args()
    begun = time.monotonic()
    runs = [attack(options.seed, blind, options.segments // 2) for blind in (True, False)]
    wrong = [f"{run['kind']}: {what}" for run in runs for what in run["wrong"]]
    summary = {"tier": "model", "seed": options.seed, "wall_s": round(time.monotonic() - begun, 1), "runs": runs}
    if options.json:
        print(json.dumps(summary))
    else:
        for run in runs:
            print(", ".join(f"{name}: {value}" for name, value in run.items() if name != "wrong"))
        print("\n".join(wrong) or f"nothing wrong, {summary['wall_s']} s")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
