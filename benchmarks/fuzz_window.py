"""Hostile packets at the filter `window`, by the million: half of them octets, mutated in part, half objects.

    .venv/bin/python -m benchmarks.fuzz_window [--packets N] [--seed N] [--json]

`tests/harness/window_attack.py` draws the packets and checks each of them. It ends with 1 when the filter broke a rule.
`benchmarks.fuzz_filters` attacks all filters with real connections beside.
"""

import json
import sys
import time
from typing import Any

from benchmarks.common import parser, whole
from tcpip.access import Objects, Octets
from tests.harness.checked import RuleBrokenError
from tests.harness.window_attack import assault


def main() -> None:
    """Attack and print."""
    options_of = parser(__doc__)
    options_of.add_argument("--packets", type=whole(1000), default=1_000_000, help="hostile packets in all")
    options = options_of.parse_args()
    found: dict[str, Any] = {"tier": "model", "seed": options.seed, "packets": 0, "wrong": []}
    for access in (Octets(), Objects()):
        begun = time.process_time()
        name = type(access).__name__.lower()
        try:
            parts = list(assault(access, options.packets // 2, options.seed))
        except RuleBrokenError as error:
            found["wrong"].append(f"{name}: {error}")
            continue
        found["packets"] += options.packets // 2
        found[name] = {
            "most_held_bytes": max(held for held, _ in parts),
            "windows_changed": parts[-1][1],
            "us_per_packet": round((time.process_time() - begun) * 2e6 / options.packets, 1),
        }
    print(json.dumps(found) if options.json else "\n".join(f"{key}: {value}" for key, value in found.items()))
    sys.exit(1 if found["wrong"] else 0)


if __name__ == "__main__":
    main()
