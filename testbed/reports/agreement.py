"""Agreement of two groups of points, as of the same scenario on two tiers: how near are their runs?

Rules kept
- Medians are compared, over the runs that both points have with the same seeds: the same losses, frame by frame.
- A score is the smaller median over the larger one: 1 is the same, and which of the two is larger does not matter.
- Points agree if they do so over all these pairs, and over those without late runs.
- The bound is the campaign's, and holds for the goodput alone. It is fixed with the plan.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median

from telemetry.parquet import read_records
from testbed.campaigns.file import Agreement
from testbed.campaigns.folder import RUNS
from testbed.campaigns.plan import Point, words_of
from testbed.reports.document import Block, Heading, Paragraph, Table
from testbed.reports.footnotes import marks, notes
from testbed.reports.numbers import Campaigned, read_summary
from testbed.results.metrics import metric

#: the quantity that bounds are for
_BOUND = "goodput (Mbit/s)"


def _mean_of_records(column: str, scale: float) -> Callable[[Path], float | None]:
    """Return the reading of a column of the first TCP sender: its mean over the run's records."""

    def read(folder: Path) -> float | None:
        rows = read_records(folder, "tcp", ("flow", column))
        values = [row[column] for row in rows if row["flow"] == rows[0]["flow"] and row[column] is not None]
        # of a stranger's, which may be none or sum up to none
        with suppress(ArithmeticError, ValueError):
            return fmean(values) / scale
        return None

    return read


def _figure(name: str, scale: float = 1.0) -> Callable[[Path], float | None]:
    """Return the reading of a figure of `summary.json`."""

    def read(folder: Path) -> float | None:
        found = metric(read_summary(folder), name)
        return None if found is None else found / scale

    return read


#: the quantities compared, by their labels: reading from a run's folder; None where a run has none
QUANTITIES: Mapping[str, Callable[[Path], float | None]] = {
    _BOUND: _figure("goodput_bps", 1e6),
    "TCP retransmissions": _figure("retransmissions"),
    "link retransmissions": _figure("link.up.retransmissions"),
    "smoothed RTT, mean (ms)": _mean_of_records("srtt_ms", 1.0),
    "cwnd, mean (KiB)": _mean_of_records("cwnd_bytes", 1024.0),
}


@dataclass(frozen=True, slots=True)
class Compared:
    """One quantity at two points."""

    #: the settings that both points have
    where: str
    points: str
    to: str
    quantity: str
    #: pairs of runs with the same seed
    n: int
    #: medians at both
    ours: float
    theirs: float
    #: largest difference allowed, as a share of `theirs`; None: no bound
    within: float | None
    #: the medians over the pairs without late runs; None: there are none
    on_time: tuple[float, float] | None
    #: of the footnotes that the runs of both need
    marks: str = ""

    @property
    def ratio(self) -> float | None:
        """Ours over theirs; None where theirs is 0 alone."""
        return _ratio(self.ours, self.theirs)

    @property
    def score(self) -> float:
        """How near they are, 0 to 1."""
        larger = max(self.ours, self.theirs)
        return min(self.ours, self.theirs) / larger if larger else 1.0

    @property
    def agrees(self) -> bool:
        """Whether they differ by the bound at most, without late runs, too; without a bound, always."""
        on_time = self.within is None or (self.on_time is not None and self._near(*self.on_time))
        return on_time and self._near(self.ours, self.theirs)

    @property
    def verdict(self) -> str:
        """The outcome in words."""
        if self.agrees:
            return "agrees"
        return "not decided without late runs" if self._near(self.ours, self.theirs) else "differs"

    def _near(self, ours: float, theirs: float) -> bool:
        ratio = _ratio(ours, theirs)
        return self.within is None or (ratio is not None and abs(ratio - 1) <= self.within)


def _ratio(ours: float, theirs: float) -> float | None:
    if theirs:
        return ours / theirs
    return None if ours else 1.0


def compare(campaign: Campaigned) -> list[Compared]:
    """Compare all pairs of points for which the campaign states a bound."""
    found: list[Compared] = []
    for wanted in campaign.plan.campaign.agreement:
        for point, other in campaign.plan.pairs(wanted.points, wanted.to):
            found += _compared(campaign, wanted, point, other)
    return found


def _compared(campaign: Campaigned, wanted: Agreement, point: Point, other: Point) -> Iterator[Compared]:
    mine, yours = _folders(campaign, point), _folders(campaign, other)
    seeds = sorted(mine.keys() & yours.keys())
    apart = wanted.points.keys() | wanted.to.keys()
    where = words_of({key: value for key, value in point.settings.items() if key not in apart})
    late = campaign.late(point) | campaign.late(other)
    for quantity, read in QUANTITIES.items():
        pairs = [(seed, read(mine[seed]), read(yours[seed])) for seed in seeds]
        known = {seed: (a, b) for seed, a, b in pairs if a is not None and b is not None}
        if medians := _medians(known.values()):
            yield Compared(
                where=where,
                points=words_of(wanted.points),
                to=words_of(wanted.to),
                quantity=quantity,
                n=len(known),
                ours=medians[0],
                theirs=medians[1],
                within=wanted.within if quantity == _BOUND else None,
                on_time=_medians([pair for seed, pair in known.items() if seed not in late]),
                marks=marks(campaign.rows_of(point, other)),
            )


def _medians(pairs: Collection[tuple[float, float]]) -> tuple[float, float] | None:
    return (median(ours for ours, _ in pairs), median(theirs for _, theirs in pairs)) if pairs else None


def _folders(campaign: Campaigned, point: Point) -> dict[int, Path]:
    """Return the folders of a point's runs that count, by seed."""
    return {run.seed: campaign.path / RUNS / run.name for run, row in campaign.runs[point.name] if row.counts}


def footnotes(campaign: Campaigned) -> Iterator[Paragraph]:
    """Yield the note of the runs compared that are not whole."""
    pairs = [pair for each in campaign.plan.campaign.agreement for pair in campaign.plan.pairs(each.points, each.to)]
    return notes((point.label, campaign.rows_of(point)) for pair in pairs for point in pair)


def tables(found: Sequence[Compared]) -> Iterator[Table]:
    """Yield the comparison: a table for each pair of groups."""
    for points, to in dict.fromkeys((each.points, each.to) for each in found):
        headings = ["point", "quantity", "pairs", f"A: {points}", f"B: {to}", "A / B", "score", "bound", ""]
        rows = [_row(each) for each in found if (each.points, each.to) == (points, to)]
        yield Table(headings, rows, 2)


def _row(each: Compared) -> list[str]:
    bounded = each.within is not None
    return [
        each.where,
        each.quantity,
        f"{each.n}{each.marks}",
        f"{each.ours:.4g}{each.marks}",
        f"{each.theirs:.4g}{each.marks}",
        "" if each.ratio is None else f"{each.ratio:.2f}{each.marks}",
        f"{each.score:.2f}{each.marks}",
        f"{1 - each.within:.2f} to {1 + each.within:.2f}" if each.within is not None else "",
        f"{each.verdict}{each.marks}" if bounded else "",
    ]


def blocks(campaign: Campaigned) -> Iterator[Block]:
    """Yield the section of a campaign's report; nothing for a campaign that compares no points."""
    found = compare(campaign)
    if not found:
        return
    yield Heading(2, "Agreement")
    yield from tables(found)
    yield from footnotes(campaign)
    yield Paragraph(
        f"{summary(found)} Medians over the seeds that both points have. A score is the smaller median over the larger "
        "one. RTT and congestion window are means over the records of the first flow's sender."
    )


def summary(found: Sequence[Compared]) -> str:
    """Return the result in one sentence."""
    bounded = [each for each in found if each.within is not None]
    if not bounded:
        return "No pair of points has a goodput to compare."
    scores = [each.score for each in bounded]
    return (
        f"The goodput agrees at {sum(each.agrees for each in bounded)} of {len(bounded)} pairs of points; its score is "
        f"{fmean(scores):.2f} on average and {min(scores):.2f} at least."
    )
