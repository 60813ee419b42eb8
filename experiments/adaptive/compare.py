"""slacp-adaptive beside fixed settings of `slacp`, `arq` and `hybrid`: the SLACP paper's table 2, traces and changes.

    python -m experiments.adaptive.compare runs/compare.jsonl [--case table2/cra loss outage …] [--link slacp …]
        [--budget 2 3 …] [--seeds 5] [--first-seed 8001] [--workers 1] [--plot FILE.png]

Runs that the file has already are not made again. A case is chosen by the beginning of its name.

Rules kept
- Cases of table 2 are the paper's cells (experiments/slacp) with another link: goodput is that of the transfers, from
  the first SYN to the end of the last one, 0 when one has not ended. All others are `scenarios/lossy-link.yaml` with
  other losses, the same in both directions, and a bulk transfer as in `eta.py`.
- A setting is *behind* by the share of goodput that it lacks to the best fixed setting with equal or lower delay, of
  which the 99th percentile counts. All figures are medians over the seeds.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from common.sides import SIDES, Side
from common.units import SECOND
from experiments.adaptive import eta
from experiments.adaptive.__main__ import BUDGETS
from experiments.adaptive.eta import BULK, FRAME_MS, Figures
from experiments.slacp import cells, jobs
from experiments.slacp.parameters import ONE_MB
from linklayer.schemes import SCHEMES
from testbed.campaigns.journal import Journal, read_journal
from testbed.campaigns.processes import call_all
from testbed.cli.app import status_of
from testbed.model.link_network import LinkNetwork
from testbed.model.model_run import Simulation
from testbed.model.traffic import Traffic
from testbed.model.watch import Watch
from testbed.papers.plots import COLOURS, save, subplots, title_and_legend
from testbed.papers.report import table
from testbed.papers.runs import seeded
from testbed.paths import root
from testbed.scenario.file import load
from testbed.scenario.resolver import resolve
from testbed.scenario.run_plan import make_rng
from testbed.scenario.schema import Scenario
from testbed.scenario.settings import apply_setting

#: how long `arq` and `hybrid` wait for an acknowledgement on the satellite link (ms): 1.3 round trips without a queue,
#: of which an assignment on request has another request cycle
_RESEND_MS: Final = {"cra": 1_200, "rbdc": 2_400, "vbdc": 2_400}
#: the fixed links that are tried with slacp-adaptive's queue, too
_BEST: Final = ("slacp", "arq, 5 retries")
#: the errors of lossy-link over time: from which second on, which loss
Steps = Sequence[tuple[float, float]]
STEPS: Final[Mapping[str, Steps]] = {
    "loss 1, 20, 1 %": ((0, 0.01), (20, 0.2), (40, 0.01)),
    "outage 0.5 s": ((0, 0.01), (20, 1), (20.5, 0.01), (40, 1), (40.5, 0.01)),
    "outage 2 s": ((0, 0.01), (20, 1), (22, 0.01), (40, 1), (42, 0.01)),
}
#: and those of a model: bursts in which all frames are lost, by their mean length in frames, at 10 % loss
BURSTS: Final = {"bursts 5": 5, "bursts 20": 20}
#: recorded of scenarios/fading-link.yaml, both directions
TRACES: Final = {f"trace {snr_db} dB": f"scenarios/traces/fading-link-{snr_db}db" for snr_db in (12, 15)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A link; `budget` in link round trips, 0 for fixed links. `queue`: a fixed link has slacp-adaptive's queue."""

    link: str
    budget: float = 0
    queue: bool = False

    @property
    def words(self) -> str:
        """Its name in tables."""
        return f"{self.budget:g} rt" if self.budget else self.link + ("; its queue" if self.queue else "")

    def settings(self, resend_ms: float = 80) -> list[str]:
        """Return its changes of a scenario."""
        budget = [f"link.slacp-adaptive.budget_round_trips={self.budget}"] if self.budget else []
        queue = [f"link.queue={json.dumps(dict(SCHEMES['slacp-adaptive'].queue))}"] if self.queue else []
        return [*eta.links(resend_ms)[self.link], *budget, *queue]


@dataclass(frozen=True, slots=True)
class Task:
    """A run of a case."""

    case: str
    setting: Setting
    seed: int


# -- the cases -----------------------------------------------------------------------------------------------


def table2() -> Mapping[str, cells.Case]:
    """Return the cells of table 2 by the names of its rows."""
    found = (cell.case for cell in cells.read())
    return {
        f"table2/{case.dama}/{case.errors}/{case.tcp}/{case.workload}": case
        for case in found
        if case.table == 2 and case.link == "slacp"
    }


def names() -> list[str]:
    """Return the names of all cases."""
    return [*table2(), *TRACES, *STEPS, *BURSTS]


def scenario(task: Task) -> Scenario:
    """Return the scenario of a run."""
    case = table2().get(task.case)
    if case is not None:
        settings = task.setting.settings(_RESEND_MS[case.dama])
        scheme = settings[0].partition("=")[2]
        return seeded(jobs.scenario(case._replace(link=scheme), settings), task.seed)
    settings = [*task.setting.settings(), *BULK, *_errors(task.case)]
    return load(root() / "scenarios/lossy-link.yaml", settings, tier="model", tcp="user:modern", seed=task.seed)


def _errors(case: str) -> Iterator[str]:
    """Yield the settings of a case's errors."""
    if case in TRACES:
        for side in SIDES:
            path = root() / f"{TRACES[case]}-{side}.parquet"
            yield f"channel.{side}.errors={{model: trace, path: {path}}}"
    elif case in BURSTS:
        bad_ms = BURSTS[case] * FRAME_MS
        yield f"channel.errors={{model: gilbert-elliott, bad_ms: {bad_ms}, good_ms: {9 * bad_ms}, bad_per: 1}}"
    else:
        yield f"channel.errors={{model: bernoulli, per: {STEPS[case][0][1]}}}"


def measure(task: Task) -> Figures:
    """Make a run. Raises FadelabError."""
    made = scenario(task)
    if task.case in table2():
        meter = _Delays()
        summary = Simulation(resolve(made), watch=meter, timed=True).run()
        start_s, end_s = min(flow.start_s for flow in summary.flows), max(flow.end_s for flow in summary.flows)
        return eta.figures(summary, 8 * ONE_MB / (end_s - start_s) if summary.finished else 0.0, meter.delays_ns)
    return eta.bulk(made, _changes(made, STEPS.get(task.case, ())))


class _Delays(Watch):
    """Delays of packets."""

    def __init__(self) -> None:
        self.delays_ns: list[int] = []

    def crossed(self, side: Side, delay: int, now: int) -> None:
        if side == "up":
            self.delays_ns.append(delay)


def _changes(made: Scenario, steps: Steps) -> Callable[[LinkNetwork, Traffic], None]:
    """Return what gives both directions of a network their later losses."""

    def begun(network: LinkNetwork, traffic: Traffic) -> None:
        for at_s, loss in steps[1:]:
            network.clock.at(network.clock.now + round(at_s * SECOND), change, (network, at_s, loss))

    def change(what: tuple[LinkNetwork, float, float]) -> None:
        network, at_s, loss = what
        raw = made.plain()
        apply_setting(raw, f"channel.errors={{model: bernoulli, per: {loss}}}")
        stations = resolve(Scenario.model_validate(raw)).stations
        for side, station in network.stations.items():
            rng = make_rng(made.seed, "channel", side, f"{at_s}")
            station.hop.set_errors(stations[side].hop.make_errors(rng))

    return begun


# -- the comparison ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Point:
    """Medians over the seeds."""

    goodput_bps: float
    p99_ms: float


#: by case and setting
Points = Mapping[str, Mapping[Setting, Point]]


def collect(path: Path) -> Points:
    """Return the medians of the runs in a file."""
    found: dict[str, dict[Setting, list[Mapping[str, Any]]]] = {}
    for row in read_journal(path):
        found.setdefault(row["case"], {}).setdefault(Setting(**row["setting"]), []).append(row)
    return {
        case: {
            setting: Point(eta.medians(runs, "goodput_bps"), eta.medians(runs, "p99_ms"))
            for setting, runs in by_setting.items()
        }
        for case, by_setting in found.items()
    }


def _settings(points: Points) -> list[Setting]:
    return sorted(
        {each for by in points.values() for each in by}, key=lambda each: (each.budget, each.queue, each.link)
    )


def behind(points: Mapping[Setting, Point], setting: Setting) -> float:
    """Return the share of goodput that a setting lacks to the best fixed one at equal or lower delay; below 0: none."""
    own = points[setting]
    fixed = [point.goodput_bps for each, point in points.items() if not each.budget and point.p99_ms <= own.p99_ms]
    best = max(fixed, default=0.0)
    return 1 - own.goodput_bps / best if best else -1.0


def lines(points: Points) -> Iterator[str]:
    """Yield a table of the cases: goodput in kbit/s, 99th percentile of delay in ms, and what a budget is behind."""
    settings = _settings(points)

    def entry(by: Mapping[Setting, Point], setting: Setting) -> str:
        point = by.get(setting)
        if point is None:
            return ""
        lacks = behind(by, setting) if setting.budget else 0
        return f"{point.goodput_bps / 1e3:.0f}, {point.p99_ms:.0f}" + (f" (-{100 * lacks:.0f} %)" if lacks > 0 else "")

    yield from table(
        ["case", *(setting.words for setting in settings)],
        ([case, *(entry(by, setting) for setting in settings)] for case, by in points.items()),
    )


def verdicts(points: Points) -> Iterator[str]:
    """Yield a table: in how many cases each budget is at most 3 % behind, and its worst case."""
    budgets = [setting for setting in _settings(points) if setting.budget]

    def row(budget: Setting) -> list[str]:
        lacks = {case: behind(by, budget) for case, by in points.items() if budget in by}
        worst = max(lacks, key=lambda case: lacks[case])
        within = sum(lack <= 0.03 for lack in lacks.values())
        return [budget.words, f"{within} of {len(lacks)}", f"{worst}: {100 * lacks[worst]:.0f} %"]

    yield from table(["budget", "at most 3 % behind", "worst case"], map(row, budgets))


def plot(points: Points, target: Path) -> None:
    """Draw goodput over the 99th percentile of delay; of table 2 a panel per assignment, both relative to `slacp`."""
    satellite = [f"table2/{dama}/" for dama in cells.DAMA]
    panels = [*satellite, *(case for case in points if not case.startswith("table2/"))]
    columns = (len(panels) + 1) // 2
    from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

    figure, axes = subplots(2, columns, figsize=(3.4 * columns, 6.6))
    slacp = Setting(link="slacp")
    for axis, panel in zip(axes.flat, panels, strict=False):
        relative = panel in satellite
        shown = [by for case, by in points.items() if case.startswith(panel)]
        for number, setting in enumerate(_settings(points)):
            found = [(by[setting], by[slacp] if relative else Point(1e6, 1)) for by in shown if setting in by]
            axis.plot(
                [point.p99_ms / unit.p99_ms for point, unit in found],
                [point.goodput_bps / unit.goodput_bps for point, unit in found],
                "o" if setting.budget else "s",
                color=COLOURS[number % len(COLOURS)],
                markersize=4,
                label=setting.words,
            )
        axis.set_title(panel, fontsize=9)
        axis.set(xscale="log", ylim=(0, None), xlabel="99 % of delay, " + ("of slacp's" if relative else "ms"))
        axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
        axis.xaxis.set_major_formatter(FormatStrFormatter("%g"))
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.set_ylabel("goodput, " + ("of slacp's" if relative else "Mbit/s"))
    title_and_legend(figure, axes.flat[0], "Goodput over delay; round: slacp-adaptive by its budget in round trips")
    save(figure, target)


def main() -> None:
    """Make the runs that are missing, and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m experiments.adaptive.compare", description=__doc__)
    parser.add_argument("out", type=Path, metavar="FILE.jsonl", help="the runs, one a line; made or gone on with")
    parser.add_argument("--case", nargs="*", default=[""], help="beginnings of names; none: no runs, the tables only")
    parser.add_argument("--link", nargs="+", choices=eta.LINKS, default=list(eta.LINKS))
    parser.add_argument("--budget", nargs="+", type=float, default=BUDGETS, help="in link round trips")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=8001)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--plot", type=Path, metavar="FILE.png")
    arguments = parser.parse_args()
    settings = [
        Setting(link=link, budget=budget, queue=queue)
        for link in arguments.link
        for budget in (arguments.budget if link == "slacp-adaptive" else [0])
        for queue in ((False, True) if link in _BEST else (False,))
    ]
    wanted = [name for name in names() if name.startswith(tuple(arguments.case))]
    known = {(row["case"], Setting(**row["setting"]), row["seed"]) for row in read_journal(arguments.out)}
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    tasks = [Task(case, setting, seed) for seed in seeds for case in wanted for setting in settings]
    tasks = [task for task in tasks if (task.case, task.setting, task.seed) not in known]
    with Journal(arguments.out) as journal:

        def keep(task: Task, figures: Figures) -> None:
            row = {"case": task.case, "setting": asdict(task.setting), "seed": task.seed, "figures": asdict(figures)}
            journal.append(row)

        call_all(measure, tasks, workers=arguments.workers, done=keep)
    points = collect(arguments.out)
    print(*lines(points), "", *verdicts(points), sep="\n")
    if arguments.plot:
        plot(points, arguments.plot)


if __name__ == "__main__":
    sys.exit(status_of(main))
