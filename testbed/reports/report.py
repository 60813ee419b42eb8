"""The report of a campaign, and the comparison of two."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from common.units import number_of
from testbed.campaigns.file import CampaignError, Reference
from testbed.campaigns.folder import PLAN, RUNS
from testbed.campaigns.plan import Point
from testbed.campaigns.rows import Row
from testbed.reports import agreement, felt
from testbed.reports.document import Block, Code, Heading, Paragraph, Picture, Table, markdown, page
from testbed.reports.figures import figures
from testbed.reports.footnotes import counted, marked, notes
from testbed.reports.numbers import SIGNIFICANT, Campaigned, Tested, difference, family, judge
from testbed.reports.words import interval_words, mean_words, number, probability
from testbed.results.show import AS_GIVEN, pyplot
from testbed.results.statistics import METHODS, Interval, NoInterval, Paired, Sample, least_n
from testbed.results.whole_files import write_whole

FIGURES = "figures"


def write_report(campaign: Campaigned, folder: Path) -> list[Path]:
    """Write report.html, report.md and figures/ into a folder; return the two reports. Raises CampaignError."""
    with pyplot().rc_context(AS_GIVEN):
        blocks = [*_report(campaign), *_origin(campaign)]
    return _write(blocks, folder)


def write_comparison(ours: Campaigned, theirs: Campaigned, folder: Path) -> list[Path]:
    """Write the comparison of two campaigns into a folder, as `write_report` does."""
    with pyplot().rc_context(AS_GIVEN):
        blocks = list(_comparison(ours, theirs))
    return _write(blocks, folder)


def _write(blocks: Sequence[Block], folder: Path) -> list[Path]:
    pictures = [block for block in blocks if isinstance(block, Picture)]
    try:
        (folder / FIGURES if pictures else folder).mkdir(parents=True, exist_ok=True)
        for picture in pictures:
            write_whole(folder / FIGURES / f"{picture.name}.svg", picture.svg.encode())
        files = {"report.html": page(blocks), "report.md": markdown(blocks, FIGURES)}
        for name, text in files.items():
            write_whole(folder / name, text.encode())
    except OSError as error:
        raise CampaignError(f"{folder}: cannot be written: {error.strerror}") from None
    return [folder / name for name in files]


# -- one campaign --------------------------------------------------------------------------------------------


def _report(campaign: Campaigned) -> Iterator[Block]:
    plan = campaign.plan
    yield Heading(1, f"Campaign {plan.campaign.name}")
    if plan.campaign.description:
        yield Paragraph(f"{plan.campaign.description}.".replace("..", "."))
    yield Paragraph(_extent(campaign))
    if hypotheses := judge(campaign):
        yield from _hypotheses(campaign, hypotheses)
    yield from agreement.blocks(campaign)
    pictures = list(figures(campaign))
    for metric in plan.campaign.all_metrics:
        yield Heading(2, metric)
        yield _metric(campaign, metric)
        yield from notes((point.label, campaign.rows_of(point)) for point in plan.points)
        yield Paragraph(_METHODS)
        yield from (picture for picture in pictures if picture.name == f"bars-{metric}")
    yield from felt.blocks(campaign)
    if over_time := [picture for picture in pictures if not picture.name.startswith("bars-")]:
        yield Heading(2, "Example runs")
        yield from over_time
    if campaign.left_out:
        yield Heading(2, "Runs left out")
        yield Table(["run", "error"], [[row.run, row.error or row.kind] for row in campaign.left_out], 2)


def _extent(campaign: Campaigned) -> str:
    points = len(campaign.plan.points)
    words = [f"{number_of(points, 'point')}, {counted(campaign.rows)}."]
    scenarios = [point.scenario for point in campaign.plan.points]
    tiers = dict.fromkeys(str(each["tier"]) for each in scenarios)
    tcps = dict.fromkeys(" and ".join(dict.fromkeys(_tcps(each))) for each in scenarios)
    seeds = sorted({run.seed for point in campaign.plan.points for run, _ in campaign.runs[point.name]})
    words.append(f"Tier {', '.join(tiers)}; TCP {', '.join(tcps)}; seeds {_seeds(seeds) or 'none yet'}.")
    if not campaign.complete:
        words.append(f"It is not complete: {campaign.planned - len(campaign.rows)} runs are missing.")
    words.append(f"The plan was hashed before the first run: SHA-256 {campaign.plan.sha256}.")
    return " ".join(words)


def _tcps(scenario: Mapping[str, Any]) -> Iterator[str]:
    """Yield the TCP of each host in a scenario's values."""
    for key in ("tcp", "tcp_h2"):
        if (tcp := scenario.get(key)) is not None:
            yield f"{tcp.get('profile')} with options of its own" if isinstance(tcp, Mapping) else str(tcp)


def _hypotheses(campaign: Campaigned, found: Sequence[Tested]) -> Iterator[Block]:
    yield Heading(2, "Hypotheses")
    rows = [
        [
            each.hypothesis.claim,
            each.greater.label,
            each.than.label,
            each.hypothesis.metric,
            *marked(
                [each.verdict, *_paired(each.difference.pairs, each.interval, each.p)],
                campaign.rows_of(each.greater, each.than),
            ),
        ]
        for each in found
    ]
    headings = ["claim", "greater", "than", "metric", "outcome", "pairs", "difference", _percent(found[0].alpha), "p"]
    yield Table(headings, rows, 5)
    yield from notes((point.label, campaign.rows_of(point)) for each in found for point in (each.greater, each.than))
    yield Paragraph(_tests(found[0].tests, found[0].alpha))


def _paired(found: Paired, interval: Interval | NoInterval, p: float | None) -> list[str]:
    shift = number(found.shift, endless="infinite")
    return [str(found.n), shift, interval_words(interval, endless="infinite"), "" if p is None else probability(p)]


def _percent(alpha: float) -> str:
    """Return the heading of intervals at a level."""
    return f"{100 * (1 - alpha):.4g} % interval"


def _tests(count: int, alpha: float) -> str:
    """Return the method of a table of differences."""
    return (
        "Runs are paired by their seeds. Difference: the typical one, the median of the means of every two differences "
        "(Hodges-Lehmann). p: Wilcoxon's signed-rank test, two-sided, exact, adjusted for "
        f"{number_of(count, 'test')} (false discovery rate, Benjamini-Hochberg). A difference is found at an adjusted "
        f"p of {SIGNIFICANT:g} at most. The interval is of the same test, at the level of the differences found (false "
        f"coverage rate, Benjamini-Yekutieli): the {_percent(alpha)} excludes 0 exactly where a difference is found. "
        f"This level needs "
        f"{least_n('median', 1 - alpha)} pairs."
    )


def _metric(campaign: Campaigned, metric: str) -> Table:
    references = [each for each in campaign.plan.campaign.reference if each.metric == metric]
    headings = ["point", "n", "median", "quartiles", "95 % of the median", "mean", "95 % of the mean"]
    if references:
        headings += ["published", "ours / published", "source"]
    rows = []
    for point in campaign.plan.points:
        sample = campaign.sample(point, metric)
        row = [
            str(sample.n),
            number(sample.median),
            "" if sample.p25 is None else f"{number(sample.p25)} to {number(sample.p75)}",
            interval_words(sample.median_interval),
            mean_words(sample, list(campaign.values(point, metric).values())),
            interval_words(sample.mean_interval),
        ]
        published: list[str] = []
        if references:
            value, ratio, source = _published(sample, next((each for each in references if _fits(each, point)), None))
            published = [value, *marked([ratio], campaign.rows_of(point)), source]
        rows.append([point.label, *marked(row, campaign.rows_of(point)), *published])
    return Table(headings, rows)


def _fits(reference: Reference, point: Point) -> bool:
    return reference.at.items() <= point.settings.items()


def _published(sample: Sample, reference: Reference | None) -> list[str]:
    if reference is None:
        return ["", "", ""]
    if sample.median is None or not reference.value:
        ratio = ""
    else:
        ratio = "never" if math.isinf(sample.median) else f"{sample.median / reference.value:.2f}"
    return [number(reference.value), ratio, reference.source]


def _origin(campaign: Campaigned) -> Iterator[Block]:
    """Yield the origin of every number, and the commands that make it again."""
    yield Heading(2, "Origin of every number")
    rows = []
    for point in campaign.plan.points:
        runs = [(run, row) for run, row in campaign.runs[point.name] if row.counts]
        if runs:
            late = " --allow-late" if any(row.on_time is False for _, row in runs) else ""
            span = runs[-1][0].seed - runs[0][0].seed + 1
            rows.append(
                [
                    point.label,
                    str(point.scenario["tier"]),
                    str(point.scenario["name"]),
                    _seeds([run.seed for run, _ in runs]),
                    *(", ".join(sorted({getattr(row, name) for _, row in runs})) for name in _MADE_BY),
                    ", ".join(sorted({row.sources[:12] for _, row in runs})),
                    _lateness([row for _, row in runs]),
                    f"fadelab run {RUNS}/{runs[0][0].name}/scenario.yaml --repeat {span}{late} --out AGAIN",
                ]
            )
    made_by = ["fadelab", "machine", "kernel", "clock", "cores", "sources"]
    yield Table(["point", "tier", "scenario", "seeds", *made_by, "late frames", "command"], rows, 12)
    yield Paragraph(
        "The commands are for the campaign's folder, with the folder of fadelab in PATH. AGAIN is a new folder. The "
        "whole campaign, on tier model with the same files to the byte:"
    )
    late = " --allow-late" if any(row.counts and row.on_time is False for row in campaign.rows) else ""
    yield Code(f"fadelab campaign {PLAN}{late} --out AGAIN")
    yield Paragraph(
        "Median and quartiles interpolate between neighbours. docs/campaigns.md defines the intervals, and says how "
        "often they contain the truth, as measured."
    )


_MADE_BY = ("fadelab", "processor", "kernel", "clock", "cores")


def _lateness(rows: Sequence[Row]) -> str:
    """Return how many frames of some runs were late, of how many; nothing where a run does not tell."""
    late, events = [row.late_events for row in rows], [row.events for row in rows]
    if None in late or None in events:
        return ""
    return f"{sum(filter(None, late))} of {sum(filter(None, events))}"


def _seeds(seeds: Sequence[int]) -> str:
    """Return seeds as ranges."""
    ranges: list[list[int]] = []
    for seed in sorted(seeds):
        if ranges and seed == ranges[-1][1] + 1:
            ranges[-1][1] = seed
        else:
            ranges.append([seed, seed])
    return ", ".join(f"{first}" if first == last else f"{first} to {last}" for first, last in ranges)


# -- two campaigns -------------------------------------------------------------------------------------------


def _comparison(ours: Campaigned, theirs: Campaigned) -> Iterator[Block]:
    yield Heading(1, f"{ours.plan.campaign.name} and {theirs.plan.campaign.name}")
    for name, campaign in (("A", ours), ("B", theirs)):
        yield Paragraph(f"{name}: {campaign.path}, plan {campaign.plan.sha256[:16]}. {counted(campaign.rows)}.")
    table, below = compared(ours, theirs)
    yield table
    yield from below
    for name, campaign in (("A", ours), ("B", theirs)):
        for block in _origin(campaign):
            yield Heading(2, f"{name}: origin of every number") if isinstance(block, Heading) else block


def compared(ours: Campaigned, theirs: Campaigned) -> tuple[Table, list[Paragraph]]:
    """Return the points that both campaigns have, metric by metric, the footnotes and the method.

    Raises CampaignError without such points.
    """
    common = list(_common(ours, theirs))
    metrics = [name for name in ours.plan.campaign.all_metrics if name in theirs.plan.campaign.all_metrics]
    if not common or not metrics:
        what = "metrics" if common else "points with the same settings"
        raise CampaignError(f"{ours.path} and {theirs.path} have no {what}")
    found = [
        (point, other, metric, difference(ours, point, theirs, other, metric))
        for metric in metrics
        for point, other in common
    ]
    tests = family([each.pairs for *_, each in found])
    complete = ours.complete and theirs.complete
    rows = []
    for (point, other, metric, apart), p in zip(found, tests.adjusted, strict=True):
        medians = number(ours.sample(point, metric).median), number(theirs.sample(other, metric).median)
        interval = apart.pairs.interval(tests.alpha)
        outcomes = {1: "A > B", 0: "", -1: "A < B", None: "not decided"}
        mark = outcomes[apart.side(tests.alpha)] if complete else "not complete"
        touched = [*ours.rows_of(point), *theirs.rows_of(other)]
        rows.append([metric, point.label, *marked([*medians, *_paired(apart.pairs, interval, p), mark], touched)])
    headings = ["metric", "point", "median A", "median B", "pairs", "A - B", _percent(tests.alpha), "p", ""]
    footnotes = notes(
        (f"{name} {point.label}", campaign.rows_of(point))
        for pair in common
        for name, campaign, point in zip("AB", (ours, theirs), pair, strict=True)
    )
    return Table(headings, rows, 2), [*footnotes, Paragraph(_tests(tests.count, tests.alpha))]


def _common(ours: Campaigned, theirs: Campaigned) -> Iterator[tuple[Point, Point]]:
    others = {repr(sorted(point.settings.items())): point for point in theirs.plan.points}
    for point in ours.plan.points:
        if (other := others.get(repr(sorted(point.settings.items())))) is not None:
            yield point, other


#: below the tables of metrics
_METHODS = (
    f"Intervals: of the median, {METHODS['median']}, from {least_n('median')} runs; of the mean, {METHODS['mean']}, "
    f"from {least_n('mean')} runs."
)
