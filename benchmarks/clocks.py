"""Do the two clocks of the live tiers give the same figures?

    sudo .venv/bin/python -m benchmarks.clocks [--only SCHEME,PER] [--repetitions N] [--seconds S] [--seed N] [--json]

`lossy-link` on tier `emulated` with Linux's CUBIC, once on the wall clock and once in virtual time for each seed: frame
error rates of 0, 1, 5 and 10 % in both directions, without a link protocol and with `slacp`. A row has the medians of
goodput over the seeds and their ratio, the median of the pairs' ratios, the medians of TCP's retransmissions, in how
many pairs they are equal, and the late events of the wall clock's runs, of which a machine that does nothing else has
none. It ends with 1 where the medians of goodput are more than 3 % apart.
"""

import itertools
import json
import math
import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.common import Column, Results, parser
from testbed.results.summary import Summary
from testbed.running import run_once
from testbed.scenario.file import load

SCENARIO = Path(__file__).parents[1] / "scenarios" / "lossy-link.yaml"
PERS = (0.0, 0.01, 0.05, 0.1)
SCHEMES = ("none", "slacp")
CLOCKS = ("wall", "virtual")
#: how far apart the medians of goodput may be
WANTED = 0.03

_COLUMNS = {
    "scheme": Column("scheme"),
    "per": Column("PER %", "g", 100),
    "wall_bps": Column("wall", ".3f", 1e-6),
    "virtual_bps": Column("virtual", ".3f", 1e-6),
    "ratio": Column("ratio", ".4f"),
    "paired_ratio": Column("of pairs", ".4f"),
    "wall_retransmissions": Column("retrans.", "g"),
    "virtual_retransmissions": Column("virtual", "g"),
    "equal": Column("equal pairs"),
    "late": Column("late"),
}


def main() -> None:
    """Run and print."""
    options_of = parser(__doc__, repetitions=20)
    options_of.add_argument("--seconds", type=float, default=5.0, help="of traffic (default 5)")
    options_of.add_argument("--only", metavar="SCHEME,PER", help="one row alone, such as none,0.1")
    options = options_of.parse_args()
    unit = (
        f"{options.repetitions} seeds, {options.seconds:g} s of CUBIC, Mbit/s of goodput and retransmissions, medians"
    )
    results = Results(options, "emulated", unit, _COLUMNS)
    with tempfile.TemporaryDirectory() as place:
        for scheme, per in itertools.product(SCHEMES, PERS):
            if options.only in (None, f"{scheme},{per:g}"):
                pairs = [
                    [_run(Path(place), clock, scheme, per, seed, options.seconds) for clock in CLOCKS]
                    for seed in range(options.seed, options.seed + options.repetitions)
                ]
                results.add(scheme=scheme, per=per, **_row(pairs))
    if not results.rows:
        options_of.error(
            f"--only {options.only}: there are {', '.join(SCHEMES)} with {', '.join(map('{:g}'.format, PERS))}"
        )
    results.finish()
    sys.exit(1 if any(abs(row["ratio"] - 1) > WANTED for row in results.rows) else 0)


def _run(place: Path, clock: str, scheme: str, per: float, seed: int, seconds: float) -> Summary:
    settings = {
        "clock": clock,
        "seed": seed,
        "link.scheme": scheme,
        "channel.errors.per": per,
        "workloads": [{"kind": "bulk", "duration_s": seconds}],
    }
    scenario = load(SCENARIO, [f"{key}={json.dumps(value)}" for key, value in settings.items()])
    return run_once(scenario, place / f"{clock}-{scheme}-{per:g}-{seed}", lambda progress: None)


def _row(pairs: list[list[Summary]]) -> dict[str, float | str]:
    wall, virtual = zip(*pairs, strict=True)
    wall_bps, virtual_bps = (median(run.goodput_bps for run in runs) for runs in (wall, virtual))
    sent_again = [[run.retransmissions for run in runs] for runs in (wall, virtual)]
    equal = sum(ours == theirs for ours, theirs in zip(*sent_again, strict=True))
    return {
        "wall_bps": wall_bps,
        "virtual_bps": virtual_bps,
        "ratio": _over(virtual_bps, wall_bps),
        "paired_ratio": median(_over(theirs.goodput_bps, ours.goodput_bps) for ours, theirs in pairs),
        "wall_retransmissions": median(sent_again[0]),
        "virtual_retransmissions": median(sent_again[1]),
        "equal": f"{equal} of {len(pairs)}",
        "late": sum(run.late_events for run in wall),
    }


def _over(virtual_bps: float, wall_bps: float) -> float:
    return virtual_bps / wall_bps if wall_bps else math.inf


if __name__ == "__main__":
    main()
