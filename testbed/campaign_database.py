"""A campaign in a database, for programs that show it while it goes on and afterwards (docs/telemetry.md).

Rules kept
- The figures are those of the report, by the same functions.
- A database that is away costs no run: the records wait as those of a run do (`telemetry/influx/sink.py`).
- A campaign that goes on has the records of its earlier sessions, those without a database too, and none twice.
- Figures of points have the time at which they were made: InfluxDB has no null, so that a figure which a point no
  longer has (a mean, once a transfer did not end) would stay in a record that is written over.
- To make figures takes `SHARE` of a session's time at most, but for the last ones.
"""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import TYPE_CHECKING

from typing_extensions import override

from common.closing import Closing
from telemetry.records import CampaignPointRecord, CampaignRecord, CampaignRunRecord
from testbed.campaigns.folder import CampaignFolder
from testbed.campaigns.plan import CampaignPlan, Point, Run
from testbed.campaigns.rows import Row
from testbed.campaigns.schedule import Schedule
from testbed.observers import SPOOL, Complain, close_sink
from testbed.reports.footnotes import marked, marks
from testbed.reports.numbers import Campaigned, campaigned
from testbed.reports.words import interval_words, mean_words, number
from testbed.results.statistics import Interval, NoInterval

if TYPE_CHECKING:
    from telemetry.influx import Influx

#: seconds from one writing to the next at the least, and share of the time that writing may take
INTERVAL_S = 2.0
SHARE = 0.1

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class CampaignDatabase(Closing):
    """Writes the campaign of a folder to a database. On an error it calls `complain`, and the campaign goes on."""

    def __init__(
        self, influx: "Influx", folder: CampaignFolder, complain: Complain, now_ns: Callable[[], int] = time.time_ns
    ) -> None:
        # imports an HTTP client, which a campaign without a database does without
        from telemetry.influx import InfluxSink

        self._folder = folder
        self._complain = complain
        self._now_ns = now_ns
        self._epoch_ns = (folder.began - _EPOCH) // timedelta(microseconds=1) * 1000
        #: by name: the rows that are written
        self._written: dict[str, Row] = {}
        #: points with figures to write: at first all, also those without a run
        self._touched = {point.name for point in folder.plan.points}
        self._schedule: Schedule | None = None
        self._ended: int | None = None
        self._newest_ms: int | None = None
        self._next_at = 0.0
        self._sink = InfluxSink(influx, {"campaign": name_of(folder)}, folder.path.parent / SPOOL)
        self._sink.begin(self._epoch_ns)

    def look(self, schedule: Schedule) -> None:
        """Take how far the campaign is; write it, if that is due."""
        if self._ended is not None and schedule.ended > self._ended:
            self._newest_ms = self._now_ns() // 1_000_000
        self._schedule, self._ended = schedule, schedule.ended
        began = monotonic()
        if began >= self._next_at:
            self._write(schedule, "running")
            took = monotonic() - began
            self._next_at = began + max(INTERVAL_S, took / SHARE)

    @override
    def close(self) -> None:
        """Write how the session ends; complain about records that could not be sent."""
        if (schedule := self._schedule) is not None:
            self._write(schedule, "complete" if schedule.ended == schedule.planned else "interrupted")
        close_sink(self._sink, self._complain)

    def _write(self, schedule: Schedule, state: str) -> None:
        plan = self._folder.plan
        rows = list(schedule.rows())
        fresh = [(run, row) for run, row in rows if self._written.get(run.name) is not row]
        self._touched.update(run.point.name for run, _ in fresh)
        self._written.update((run.name, row) for run, row in fresh)
        failed = sum(row.status == "failed" for _, row in rows)
        self._sink.write(
            CampaignRecord(
                time_ns=0,
                name=plan.campaign.name,
                plan=plan.sha256,
                state=state,
                points=len(plan.points),
                planned=schedule.planned,
                ended=schedule.ended,
                failed=failed,
                newest_ms=self._newest_ms,
            )
        )
        for run, row in fresh:
            for record in run_records(plan, run, row):
                self._sink.write(record)
        campaign = campaigned(self._folder.path, plan, schedule)
        for point in plan.points:
            if point.name in self._touched:
                for metric in plan.campaign.all_metrics:
                    time_ns = self._now_ns() - self._epoch_ns
                    self._sink.write(point_record(campaign, point, metric, time_ns))
        self._touched.clear()


def name_of(folder: CampaignFolder) -> str:
    """Return the name of a campaign in databases: when it began, to the millisecond in UTC, and its own."""
    began = folder.began.astimezone(UTC)
    return f"{began:%y%m%d-%H%M%S}.{began.microsecond // 1000:03}-{folder.plan.campaign.name}"


def point_record(campaign: Campaigned, point: Point, metric: str, time_ns: int) -> CampaignPointRecord:
    """Return a metric at a point, of the runs that have ended."""
    sample = campaign.sample(point, metric)
    median_low, median_high = _ends(sample.median_interval)
    mean_low, mean_high = _ends(sample.mean_interval)
    words = (
        number(sample.median),
        interval_words(sample.median_interval),
        mean_words(sample, list(campaign.values(point, metric).values())),
        interval_words(sample.mean_interval),
    )
    median_text, median_interval, mean_text, mean_interval = marked(words, campaign.rows_of(point))
    return CampaignPointRecord(
        time_ns=time_ns,
        point=point.name,
        metric=metric,
        label=point.label,
        n=sample.n,
        median=sample.median,
        median_low=median_low,
        median_high=median_high,
        mean=sample.mean,
        mean_low=mean_low,
        mean_high=mean_high,
        median_text=median_text,
        median_interval=median_interval,
        mean_text=mean_text,
        mean_interval=mean_interval,
    )


def run_records(plan: CampaignPlan, run: Run, row: Row) -> Iterator[CampaignRunRecord]:
    """Yield the metrics of a run that has ended."""
    for metric in plan.campaign.all_metrics:
        value = row.value(metric)
        known = "none" if value is None else number(value)
        yield CampaignRunRecord(
            time_ns=run.replication * len(plan.points) + run.point.index,
            point=run.point.name,
            metric=metric,
            seed=run.seed,
            kind=row.kind,
            value=value,
            text=f"{known if row.counts else row.kind}{marks([row])}",
        )


def _ends(interval: Interval | NoInterval) -> tuple[float | None, float | None]:
    return (None, None) if isinstance(interval, NoInterval) else (interval.low, interval.high)
