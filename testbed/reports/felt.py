"""What users feel at each point of a campaign: delays, round trips per minute and energy, without being asked for."""

from collections.abc import Iterator
from statistics import median

from testbed.campaigns.plan import Point
from testbed.reports.document import Block, Heading, Paragraph, Table
from testbed.reports.footnotes import marked, notes
from testbed.reports.numbers import Campaigned
from testbed.results.metrics import metric
from testbed.results.quality import Powers

#: heading and metric of each column
_COLUMNS = {
    **{f"one way {place} (ms)": f"quality.one_way.{place}_ms" for place in ("p50", "p95", "p99")},
    **{f"round trip {place} (ms)": f"quality.round_trip.{place}_ms" for place in ("p50", "p95", "p99")},
    **{f"SRTT {place} (ms)": f"quality.smoothed.{place}_ms" for place in ("p50", "p95", "p99")},
    **{f"probe {place} (ms)": f"quality.probe_round_trip.{place}_ms" for place in ("p50", "p95", "p99")},
    "RPM": "quality.rpm.responsiveness",
    "RPM of the loaded": "quality.rpm.loaded",
    "energy (µJ/bit)": "quality.energy_uj_per_bit",
}


def blocks(campaign: Campaigned) -> Iterator[Block]:
    """Yield the table of all points with what is known; nothing for runs of versions without it."""
    points = campaign.plan.points
    found = [_medians(campaign, point) for point in points]
    known = [name for name in _COLUMNS if any(values[name] is not None for values in found)]
    if not known:
        return
    yield Heading(2, "What users feel")
    rows = []
    for point, values in zip(points, found, strict=True):
        cells = ("" if (value := values[name]) is None else f"{value:.4g}" for name in known)
        rows.append([point.label, *marked(cells, campaign.rows_of(point))])
    yield Table(["point", *known], rows)
    yield from notes((point.label, campaign.rows_of(point)) for point in points)
    yield Paragraph(
        "Medians over the runs that count, of each run's own percentiles under load; docs/runs.md defines the figures. "
        f"Energy is by assumed powers: {Powers()}. Campaigns that name figures in metrics have their intervals "
        "and tests."
    )


def _medians(campaign: Campaigned, point: Point) -> dict[str, float | None]:
    """Return the median of each figure over a point's runs that count; None where no run has it."""
    summaries = [campaign.summary(row) for row in campaign.rows_of(point) if row.counts]
    values = {name: [metric(summary, path) for summary in summaries] for name, path in _COLUMNS.items()}
    known = {name: [value for value in several if value is not None] for name, several in values.items()}
    return {name: median(several) if several else None for name, several in known.items()}
