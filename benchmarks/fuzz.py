"""Hostile input by the million, in virtual time: filters, link ARQ, slacp-adaptive, LT-TCP, accurate ECN, QUIC.

    .venv/bin/python -m benchmarks.fuzz [--inputs N] [--seed N] [--only WORD] [--json]

`tests/harness/attack/` has the doors, their rules, and the valid flows that must not feel the attack. The inputs are
shared between the doors with WORD in their name: arq, adaptive, filters, the name of a filter (dda, cc, snoop, ...),
lt_tcp, accecn, window, quic. Where a rule is broken, Hypothesis shrinks the attack and prints the steps that reproduce
it. It ends with 1 when a door broke a rule.
"""

import json
import sys
import time
import traceback
from typing import Any

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from benchmarks.common import parser, whole
from tests.harness.attack.doors import doors
from tests.harness.attack.siege import siege

#: steps of an attack, and attacks between two looks at how many inputs there were
STEPS, ATTACKS = 20, 4


def main() -> None:
    """Attack and print."""
    options_of = parser(__doc__)
    options_of.add_argument("--inputs", type=whole(1000), default=1_000_000, help="hostile inputs in all")
    options_of.add_argument("--only", default="", help="doors with this word in their name")
    options = options_of.parse_args()
    known = dict(doors())
    chosen = {name: make for name, make in known.items() if options.only in name}
    if not chosen:
        options_of.error(f"--only {options.only}: no such door; there are {'; '.join(known)}")
    share = -(-options.inputs // len(chosen))
    limits = settings(
        max_examples=ATTACKS, stateful_step_count=STEPS, deadline=None, derandomize=False, database=None,
        suppress_health_check=list(HealthCheck), phases=(Phase.generate, Phase.shrink),
    )  # fmt: skip
    rows: list[dict[str, Any]] = []
    for name, make in chosen.items():
        begun, shots, wrong, number = time.monotonic(), [0], "", options.seed
        while sum(shots) < share and not wrong:
            machine = siege(make, max(100, share // STEPS), shots.append)
            try:
                run_state_machine_as_test(seed(number)(machine), settings=limits)
            except Exception as error:
                wrong = "".join(traceback.format_exception_only(error))
            number += 1
        row = {"door": name, "inputs": sum(shots), "wall_s": round(time.monotonic() - begun, 1), "wrong": wrong}
        rows.append(row)
        if not options.json:
            print(f"{row['inputs']:>12,} inputs {row['wall_s']:>8} s  {name}: {wrong or 'nothing wrong'}", flush=True)
    if options.json:
        inputs = sum(row["inputs"] for row in rows)
        print(json.dumps({"tier": "model", "seed": options.seed, "inputs": inputs, "doors": rows}))
    sys.exit(1 if any(row["wrong"] for row in rows) else 0)


if __name__ == "__main__":
    main()
