"""Worlds with faults by the thousand, in virtual time: `tests/harness/fault_worlds.py` draws them and has the rules.

    .venv/bin/python -m benchmarks.faults [--worlds N] [--size N] [--seed N] [--seconds S] [--json]

A seed is `BATCH` worlds; seed after seed is taken until there are N, or S seconds are over. Worlds of a size have up to
so many times the data, changes and faults of those in the tests, and more of the time goes into frames. Where a rule is
broken, Hypothesis shrinks the world and prints it as JSON, and the last line is the command that draws it again. It
ends with 1 then.
"""

import json
import sys
import time
import traceback
from collections import Counter

from hypothesis import HealthCheck, Phase, given, seed, settings

from benchmarks.common import parser, whole
from tests.harness.fault_worlds import World, live_through, worlds

#: worlds of a seed
BATCH = 250
#: seconds of wall time between two lines of progress
_TOLD_S = 10


def main() -> None:
    """Run worlds and print."""
    options_of = parser(__doc__)
    options_of.add_argument("--worlds", type=whole(1), default=1000)
    options_of.add_argument("--size", type=whole(1), default=1, help="times the data and faults of those in the tests")
    options_of.add_argument("--seconds", type=float, default=float("inf"), help="no new seed after this")
    options = options_of.parse_args()
    total: Counter[str] = Counter()
    begun = told = time.monotonic()
    number, wrong = options.seed, ""
    while total["worlds"] < options.worlds and not wrong and time.monotonic() - begun < options.seconds:
        wrong = _batch(number, options.size, min(BATCH, options.worlds - total["worlds"]), total)
        number += 1
        if not options.json and time.monotonic() - told > _TOLD_S:
            told = time.monotonic()
            print(f"{total['worlds']:>9,} worlds {total['frames']:>15,} frames", flush=True)
    row = {
        "tier": "model",
        "size": options.size,
        "seeds": [options.seed, number - 1],
        **{name: round(value) for name, value in total.items()},
        "wall_s": round(time.monotonic() - begun, 1),
        "wrong": wrong,
    }
    print(json.dumps(row) if options.json else "\n".join(f"{name}: {value}" for name, value in row.items()))
    if wrong:
        again = f"--seed {number - 1} --size {options.size} --worlds {BATCH}"
        print(f"again: .venv/bin/python -m benchmarks.faults {again}", file=sys.stderr)
    sys.exit(1 if wrong else 0)


def _batch(number: int, size: int, count: int, total: "Counter[str]") -> str:
    """Run the worlds of a seed and add to the total; return what was wrong, in one line."""

    @seed(number)
    @settings(
        max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )  # fmt: skip
    @given(worlds(size))
    def live(world: World) -> None:
        life = live_through(world)
        total.update(worlds=1, **{name: getattr(life, name) for name in ("frames", "faults", "slow", "unborn")})
        total["virtual_s"] += life.virtual_s  # type: ignore[assignment]

    try:
        live()
    except Exception as error:
        traceback.print_exc()
        return "".join(traceback.format_exception_only(error)).strip()
    return ""


if __name__ == "__main__":
    main()
