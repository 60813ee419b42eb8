"""How near `slacp-adaptive` comes to its bound under TCP, beside fixed settings of other schemes.

    python -m experiments.adaptive.eta runs/eta.jsonl [--errors bernoulli ge2 ge20] [--loss 1 5 …] [--budget 2 3 …]
        [--tcp user:sack user:modern] [--link slacp-adaptive arq …] [--seeds 20] [--first-seed 7001] [--workers 1]
        [--set link.queue.target_ms=60] [--brief] [--plot FILE.png]

`scenarios/lossy-link.yaml` on tier `model`, one bulk transfer. Runs that the file has already are not made again.

Rules kept
- Goodput and delays leave out the first `SKIPPED_S` seconds, in which TCP and estimators start. Losses are of the whole
  run.
- eta is goodput over (1 - loss) * rate * 1448/1524 * bound. The bound is that of Bernoulli losses, at a residual loss
  of `RESIDUAL` and groups of `GROUP`. For bursts it is a reference and no bound. What is known of them is `floor`: of a
  flow that does not heed losses, any link misses this share of packets. TCP heeds them, and may miss fewer.
- A packet's delay is from its leaving the host to its leaving the far station, in order. The LAN's 0.1 ms is in it.
"""

import argparse
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from common.sides import Side
from common.units import SECOND
from experiments.adaptive.__main__ import BUDGETS, GROUP
from experiments.adaptive.bound import Link, bound, rounds_within
from testbed.campaigns.journal import Journal, read_journal
from testbed.campaigns.processes import call_all
from testbed.cli.app import status_of
from testbed.model.model_run import Begun, Simulation
from testbed.model.watch import Watch
from testbed.papers.plots import COLOURS, save, subplots, title
from testbed.papers.report import table
from testbed.paths import root
from testbed.results.statistics import statistic
from testbed.results.summary import Summary
from testbed.scenario.file import load
from testbed.scenario.resolver import resolve
from testbed.scenario.schema import Scenario

RUN_S: Final = 60
SKIPPED_S: Final = 5
RESIDUAL: Final = 1e-4
LOSSES: Final = (1, 5, 10, 20, 30, 50)
TCPS: Final = ("user:sack", "user:modern")
#: the workload: one transfer
BULK: Final = (f"workloads=[{{kind: bulk, direction: up, duration_s: {RUN_S}}}]", "trace=false")
RATE_BPS: Final = 2_000_000
FRAME_MS: Final = 1524 * 8 * 1000 / RATE_BPS
#: of a full frame, from the radio's taking it, behind another one, to its acknowledgement
ROUND_TRIP_MS: Final = 2 * 25 + 2 * FRAME_MS
#: the errors by name: the mean length of bursts in frames; 0: Bernoulli
BURSTS: Final = {"bernoulli": 0, "ge2": 2, "ge20": 20}


def links(resend_ms: float) -> Mapping[str, Sequence[str]]:
    """Return slacp-adaptive and the links beside it by their names; `resend_ms` must exceed the path's round trip."""
    return {
        "slacp-adaptive": ("link.scheme=slacp-adaptive",),
        "slacp": ("link.scheme=slacp",),
        **{
            f"arq, {retries} retries": (
                "link.scheme=arq",
                f"link.arq={{retries: {retries}, resend_after_ms: {resend_ms}, in_order: true}}",
            )
            for retries in (2, 5)
        },
        **{
            f"hybrid, {data} of 10": (
                "link.scheme=hybrid",
                f"link.hybrid={{data_fragments: {data}, resend_after_ms: {resend_ms}}}",
            )
            for data in (9, 6)
        },
    }


LINKS: Final = links(80)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A link under one TCP and one loss process; `loss` in percent, `budget` in link round trips, 0 for fixed links."""

    link: str
    tcp: str
    errors: str
    loss: float
    budget: float

    @property
    def share(self) -> float:
        """The bound."""
        return bound(Link(self.loss / 100, rounds_within(self.budget), GROUP), RESIDUAL).share if self.budget else 1.0

    @property
    def floor(self) -> float:
        """Share of the packets of a steady flow whose sending time is within one burst."""
        bad_ms = BURSTS[self.errors] * FRAME_MS
        within = math.exp(-max(0.0, self.budget - 1) * ROUND_TRIP_MS / bad_ms) if bad_ms and self.budget else 0.0
        return self.loss / 100 * within

    @property
    def settings(self) -> list[str]:
        """Its changes of the scenario."""
        loss, bad_ms = self.loss / 100, BURSTS[self.errors] * FRAME_MS
        model = (
            f"{{model: gilbert-elliott, bad_ms: {bad_ms}, good_ms: {bad_ms * (1 - loss) / loss}, bad_per: 1}}"
            if bad_ms
            else f"{{model: bernoulli, per: {loss}}}"
        )
        budget = [f"link.slacp-adaptive.budget_round_trips={self.budget}"] if self.budget else []
        return [*LINKS[self.link], *budget, f"channel.errors={model}"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a run measured. Delays in ms; `busy`: share of the time that the link sends upwards."""

    goodput_bps: float
    residual: float
    p50_ms: float
    p99_ms: float
    #: packets that the queue has dropped, of all
    dropped: float
    timeouts: int
    busy: float


class Meter(Watch):
    """Octets that the application of a transfer has read, and delays of packets, from `SKIPPED_S` to `RUN_S`."""

    def __init__(self) -> None:
        self._before = self._read = 0
        self.delays_ns: list[int] = []

    def delivered(self, flow: str, nbytes: int, now: int) -> None:
        # what TCP had buffered comes after the end
        if now <= RUN_S * SECOND:
            self._read = nbytes
        if now <= SKIPPED_S * SECOND:
            self._before = nbytes

    def crossed(self, side: Side, delay: int, now: int) -> None:
        if side == "up" and SKIPPED_S * SECOND < now <= RUN_S * SECOND:
            self.delays_ns.append(delay)

    @property
    def goodput_bps(self) -> float:
        return 8 * (self._read - self._before) / (RUN_S - SKIPPED_S)


@dataclass(frozen=True, slots=True)
class Task:
    """A run of a cell."""

    cell: Cell
    seed: int
    settings: tuple[str, ...] = ()


def measure(task: Task) -> Figures:
    """Make a run. Raises FadelabError."""
    cell = task.cell
    settings = [*cell.settings, *BULK, *task.settings]
    return bulk(load(root() / "scenarios/lossy-link.yaml", settings, tier="model", tcp=cell.tcp, seed=task.seed))


def bulk(scenario: Scenario, begun: Begun = lambda network, traffic: None) -> Figures:
    """Run a scenario with `BULK` among its settings."""
    meter = Meter()
    summary = Simulation(resolve(scenario), watch=meter, begun=begun, timed=True).run()
    return figures(summary, meter.goodput_bps, meter.delays_ns)


def figures(summary: Summary, goodput_bps: float, delays_ns: Sequence[int]) -> Figures:
    """Return the figures of a run."""
    link, delays = summary.link["up"], sorted(delays_ns) or [0]
    return Figures(
        goodput_bps=goodput_bps,
        residual=link.residual_losses / max(1, link.packets),
        p50_ms=delays[len(delays) // 2] / 1e6,
        p99_ms=delays[math.ceil(0.99 * len(delays)) - 1] / 1e6,
        dropped=link.congestion_losses / max(1, link.packets + link.congestion_losses),
        timeouts=summary.timeouts,
        busy=link.throughput_bps / RATE_BPS,
    )


def eta(cell: Cell, figures: Mapping[str, Any]) -> float:
    """Return the goodput as a share of what the bound permits."""
    possible: float = (1 - cell.loss / 100) * RATE_BPS * 1448 / 1524 * cell.share
    return float(figures["goodput_bps"]) / possible


def cells(
    links: Sequence[str], tcps: Sequence[str], errors: Sequence[str], losses: Sequence[float], budgets: Sequence[float]
) -> Iterator[Cell]:
    """Yield the cells; links without a budget have one cell per loss."""
    for each in errors:
        for loss in losses:
            for tcp in tcps:
                for link in links:
                    for budget in budgets if link == "slacp-adaptive" else [0]:
                        yield Cell(link=link, tcp=tcp, errors=each, loss=loss, budget=budget)


Rows = Mapping[Cell, Sequence[Mapping[str, Any]]]


def collect(path: Path) -> Rows:
    """Return the runs in a file by cell."""
    found: dict[Cell, list[Mapping[str, Any]]] = {}
    for row in read_journal(path):
        found.setdefault(Cell(**row["cell"]), []).append(row)
    return found


def medians(runs: Sequence[Mapping[str, Any]], name: str) -> float:
    """Return the median of a figure over the runs."""
    return statistic([float(run["figures"][name]) for run in runs], "median")


def lines(rows: Rows) -> Iterator[str]:
    """Yield a table of the cells: medians over the seeds, and the least and the largest eta."""
    headings = ["losses", "loss", "link", "budget", "TCP", "seeds", "η", "least to most", "bound", "residual", "floor"]
    headings += ["p50, ms", "p99, ms", "limit, ms", "Mbit/s", "dropped", "timeouts"]

    def row(cell: Cell, runs: Sequence[Mapping[str, Any]]) -> list[str]:
        etas = [eta(cell, run["figures"]) for run in runs]
        limit = f"{(cell.budget + 1) * ROUND_TRIP_MS:.0f}" if cell.budget else ""
        return [
            cell.errors,
            f"{cell.loss:g} %",
            cell.link,
            f"{cell.budget:g}" if cell.budget else "",
            cell.tcp.split(":")[1],
            f"{len(runs)}",
            f"{statistic(etas, 'median'):.3f}",
            f"{min(etas):.3f} to {max(etas):.3f}",
            f"{cell.share:.3f}",
            f"{medians(runs, 'residual'):.1e}",
            f"{cell.floor:.0e}" if cell.floor else "",
            f"{medians(runs, 'p50_ms'):.0f}",
            f"{medians(runs, 'p99_ms'):.0f}",
            limit,
            f"{medians(runs, 'goodput_bps') / 1e6:.3f}",
            f"{medians(runs, 'dropped'):.1e}",
            f"{medians(runs, 'timeouts'):g}",
        ]

    yield from table(headings, (row(cell, runs) for cell, runs in rows.items()))


def brief(rows: Rows) -> Iterator[str]:
    """Yield a table for each loss process: by loss and TCP, and by budget; of links without a budget, by link.

    Entries: eta, residual loss and the 99th percentile of delay in ms; bursts have the floor of the residual loss, too.
    """
    for errors in dict.fromkeys(cell.errors for cell in rows):
        shown = {cell: runs for cell, runs in rows.items() if cell.errors == errors}
        columns = sorted({(cell.budget == 0, cell.budget, cell.link) for cell in shown})
        headings = [link if fixed else f"{budget:g} rt" for fixed, budget, link in columns]
        lines = sorted({(cell.loss, cell.tcp) for cell in shown})
        seeds = sorted({len(runs) for runs in shown.values()})

        def entry(loss: float, tcp: str, column: tuple[bool, float, str], errors: str = errors) -> str:
            cell = Cell(link=column[2], tcp=tcp, errors=errors, loss=loss, budget=column[1])
            runs = rows.get(cell, ())
            if not runs:
                return ""
            figures = statistic([eta(cell, run["figures"]) for run in runs], "median")
            floor = f" ({cell.floor:.0e})" if cell.floor else ""
            return f"{figures:.2f}, {medians(runs, 'residual'):.0e}{floor}, {medians(runs, 'p99_ms'):.0f}"

        yield from ("", f"{errors}; runs per cell: {' to '.join(map(str, dict.fromkeys((seeds[0], seeds[-1]))))}", "")
        yield from table(
            ["loss", "TCP", *headings],
            (
                [f"{loss:g} %", tcp.split(":")[1], *(entry(loss, tcp, column) for column in columns)]
                for loss, tcp in lines
            ),
        )


def plot(rows: Rows, losses: Sequence[float], target: Path) -> None:
    """Draw goodput over the 99th percentile of delay: a panel per loss, Bernoulli losses, TCP `user:modern`."""
    figure, axes = subplots(1, len(losses), figsize=(4 * len(losses), 3.8), squeeze=False)
    for axis, loss in zip(axes[0], losses, strict=True):
        found = {
            cell: (medians(runs, "p99_ms"), medians(runs, "goodput_bps") / 1e6)
            for cell, runs in rows.items()
            if (cell.tcp, cell.errors, cell.loss) == ("user:modern", "bernoulli", loss)
        }
        for link, colour in zip(LINKS, COLOURS, strict=False):
            points = sorted(point for cell, point in found.items() if cell.link == link)
            if points:
                axis.plot(*zip(*points, strict=True), "o-" if len(points) > 1 else "s", color=colour, label=link)
        for cell, point in found.items():
            if cell.budget:
                axis.annotate(f"{cell.budget:g}", point, xytext=(4, -10), textcoords="offset points", fontsize=8)
        axis.axhline((1 - loss / 100) * RATE_BPS * 1448 / 1524 / 1e6, color="grey", linewidth=0.8, linestyle=":")
        axis.set(xlabel="99 % of delay, ms", ylim=(0, None))
        axis.set_title(f"{loss:g} % loss", fontsize=9)
    axes[0][0].set_ylabel("goodput, Mbit/s")
    axes[0][0].legend(frameon=False, fontsize=8)
    title(figure, "Goodput over delay; numbers: budget in round trips; dotted: (1 - loss) · rate")
    save(figure, target)


def main() -> None:
    """Make the runs that are missing, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m experiments.adaptive.eta", description=__doc__)
    parser.add_argument("out", type=Path, metavar="FILE.jsonl", help="the runs, one a line; made or gone on with")
    parser.add_argument("--link", nargs="+", choices=LINKS, default=["slacp-adaptive"])
    parser.add_argument("--tcp", nargs="+", default=TCPS)
    parser.add_argument("--errors", nargs="+", choices=BURSTS, default=["bernoulli"])
    parser.add_argument(
        "--loss", nargs="*", type=float, default=LOSSES, help="in percent; none: no runs, the table only"
    )
    parser.add_argument("--budget", nargs="+", type=float, default=BUDGETS, help="in link round trips")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=7001)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], dest="settings", metavar="KEY=VALUE")
    parser.add_argument("--brief", action="store_true", help="the tables of docs/adaptive.md")
    parser.add_argument("--plot", type=Path, metavar="FILE.png")
    arguments = parser.parse_args()
    wanted = list(cells(arguments.link, arguments.tcp, arguments.errors, arguments.loss, arguments.budget))
    known = {(cell, run["seed"]) for cell, runs in collect(arguments.out).items() for run in runs}
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    tasks = [Task(cell, seed, tuple(arguments.settings)) for seed in seeds for cell in wanted]
    tasks = [task for task in tasks if (task.cell, task.seed) not in known]
    with Journal(arguments.out) as journal:

        def keep(task: Task, figures: Figures) -> None:
            journal.append({"cell": asdict(task.cell), "seed": task.seed, "figures": asdict(figures)})

        call_all(measure, tasks, workers=arguments.workers, done=keep)
    rows = collect(arguments.out)
    print(*(brief(rows) if arguments.brief else lines(rows)), sep="\n")
    if arguments.plot:
        plot(rows, (10, 30, 50), arguments.plot)


if __name__ == "__main__":
    sys.exit(status_of(main))
