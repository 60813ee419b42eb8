"""One carrier for both directions: its goodput over that which its airtime leaves of two carriers.

    sudo .venv/bin/python -m benchmarks.one_carrier [--seed N] [--repetitions N] [--json]

Each seed has two runs of scenarios/one-carrier.yaml: as it is, and with a carrier for each direction (FDD). FDD has two
seconds of airtime in a second. `share` is the part of a second that its frames of both directions take, by the sizes in
its channel traces; what one carrier can carry at best is the goodput of FDD over this share. `of best` is the goodput
of one carrier over that. Collisions are those of both stations, by the times of their bursts.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.common import Column, Results, parser
from channel.trace import read_trace
from common.sides import SIDES
from flowgraphs.phys import make_phy
from testbed.paths import root
from testbed.results.summary import Summary
from testbed.running import run_once
from testbed.scenario.file import load
from testbed.scenario.resolver import resolve
from testbed.scenario.schema import Scenario

COLUMNS = {
    "name": Column("carriers"),
    "goodput_bps": Column("Mbit/s", ".2f", 1e-6),
    "share": Column("share", ".3f"),
    "best_bps": Column("best", ".2f", 1e-6),
    "of_best": Column("of best", ".3f"),
    "bursts": Column("bursts"),
    "collisions": Column("collisions"),
    "collisions_heard": Column("heard"),
    "late": Column("late"),
}
_TWO_CARRIERS = ("radio.access=null", "radio.down_hz=2400000000")


def main() -> None:
    """Run, divide and print."""
    options = parser(__doc__, repetitions=3).parse_args()
    results = Results(options, "vusrp", "goodput of one carrier and of two", COLUMNS)
    with TemporaryDirectory(prefix="fadelab-carriers-") as folder:
        for seed in range(options.seed, options.seed + options.repetitions):
            two, share = _run(seed, Path(folder), *_TWO_CARRIERS)
            best_bps = two.goodput_bps / share
            results.add(
                name=f"two, seed {seed}",
                goodput_bps=two.goodput_bps,
                share=share,
                best_bps=best_bps,
                late=two.late_events,
            )
            one, share = _run(seed, Path(folder))
            access = one.access.values()
            results.add(
                name=f"one, seed {seed}",
                goodput_bps=one.goodput_bps,
                share=share,
                best_bps=best_bps,
                of_best=one.goodput_bps / best_bps,
                bursts=sum(each.bursts for each in access),
                collisions=sum(each.collisions or 0 for each in access),
                collisions_heard=sum(each.collisions_heard for each in access),
                late=one.late_events,
            )
    results.finish()


def _run(seed: int, folder: Path, *settings: str) -> tuple[Summary, float]:
    """Return the result of a run, and the share of its time that frames of both directions take."""
    scenario = load(root() / "scenarios" / "one-carrier.yaml", (*settings, f"seed={seed}"))
    summary = run_once(scenario, folder, lambda progress: None)
    return summary, _airtime_s(scenario, Path(str(summary.folder))) / summary.duration_s


def _airtime_s(scenario: Scenario, folder: Path) -> float:
    radio = resolve(scenario).radio
    phy = make_phy(radio.phy, rate_sps=radio.rate_sps, **radio.phy_options["up"])
    sizes = (size for side in SIDES for size in read_trace(folder / f"trace-{side}.parquet").nbytes)
    return sum(map(phy.frame_samples, sizes)) / radio.rate_sps


if __name__ == "__main__":
    main()
