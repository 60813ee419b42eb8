"""Reports and figures of hand-made results, as they were when somebody last looked at them: look at changed ones."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from telemetry.parquet import ParquetSink
from telemetry.records import FlowRecord, LinkRecord, PhyRecord, TcpRecord
from testbed.reports import figures
from testbed.reports.numbers import Campaigned
from testbed.reports.report import compared, write_report
from testbed.results import show
from tests.harness.campaigns import done, plan
from tests.harness.records import recorded

REFERENCE = [{"source": "Kojo 2004", "metric": "duration_s", "at": {"link.scheme": "slacp"}, "value": 0.5}]

LOSSES = ("corruption_losses", "residual_losses", "congestion_losses")


def write_records(folder: Path, seed: int) -> None:
    """The result of a run, and four seconds of its records: two flows, a link in both directions, a radio."""
    folder.mkdir(parents=True)
    sides = {side: {"retransmissions": 5 * seed} for side in ("up", "down")}
    summary = {"goodput_bps": 1e6 / seed, "retransmissions": 1200 * seed, "link": sides}
    (folder / "summary.json").write_text(json.dumps(summary))
    with ParquetSink(folder, {}) as sink:
        for step in range(1, 9):
            at = step * 500_000_000
            for flow, size in (("a", 1000 * seed), ("b", 700)):
                srtt_ms = None if step == 1 else 30.0 + (7 * step + seed) % 5
                cwnd, acked = size * (step % 5 + 1), size * step * 100
                sink.write(
                    recorded(TcpRecord, time_ns=at, flow=flow, cwnd_bytes=cwnd, bytes_acked=acked, srtt_ms=srtt_ms)
                )
                sink.write(recorded(FlowRecord, time_ns=at, flow=flow, bytes_received=acked))
            for number, link in enumerate(("up", "down"), 1):
                losses = dict(zip(LOSSES, (3 * step * number, step, 2 * step), strict=True))
                sink.write(
                    recorded(LinkRecord, time_ns=at, link=link, throughput_bps=1e5 * (step % 3) + seed, **losses)
                )
                per = None if step == 3 else 0.1 * (step % 4)
                sink.write(recorded(PhyRecord, time_ns=at, link=link, snr_db=9.0 + step * number, per=per))


def made(folder: Path, **changes: Any) -> Campaigned:
    """A campaign whose runs have ended."""
    planned = plan(**changes)
    runs = {}
    for point in planned.points:
        runs[point.name] = [
            (run := planned.run(point, n), done(run.name, **_figures(point.index, n)))
            for n in range(planned.campaign.seeds.count)
        ]
        for n, (run, _) in enumerate(runs[point.name]):
            write_records(folder / "runs" / run.name, point.index + n + 1)
    return Campaigned(folder, planned, runs, sum(map(len, runs.values())))


def _figures(point: int, n: int) -> dict[str, float | None]:
    return {"duration_s": 1 + point + (n * n) / 3, "goodput_bps": None if point == 1 else 1e6 * (n + 2)}


def fingerprint(*texts: str) -> str:
    return hashlib.sha256("".join(texts).encode()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("changes", "names", "expected"),
    [
        ({"reference": REFERENCE}, 6, "6497e2ac40aa3111"),
        (
            {"sweep": {"grid": {"link.scheme": ["none", "slacp"], "channel.per": [n / 100 for n in range(7)]}}},
            6,
            "474ccf37ffefcd1e",
        ),
        ({"sweep": None}, 6, "98057213104f9ee9"),
    ],
    ids=["reference", "two keys", "no sweep"],
)
@pytest.mark.slow
def test_figures_are_what_they_were(changes: dict[str, Any], names: int, expected: str, tmp_path: Path) -> None:
    drawn = list(figures.figures(made(tmp_path, **changes)))
    for picture in drawn:
        (tmp_path / f"{picture.name}.svg").write_text(picture.svg)
    assert len(drawn) == names
    assert fingerprint(*(each.name + each.caption + each.svg for each in drawn)) == expected


@pytest.mark.slow
def test_report_is_what_it_was(tmp_path: Path) -> None:
    none, slacp, snoop = ({"link.scheme": name} for name in ("none", "slacp", "snoop"))
    claims = [
        {"claim": "slower", "metric": metric, "greater": greater, "than": than}
        for metric, greater, than in (
            ("duration_s", slacp, none),
            ("duration_s", none, snoop),
            ("goodput_bps", slacp, none),
        )
    ]
    campaign = made(
        tmp_path / "campaign",
        sweep={"grid": {"link.scheme": ["none", "slacp", "snoop"]}},
        seeds={"count": 8},
        description="What it is about",
        reference=[*REFERENCE, {**REFERENCE[0], "at": {}, "value": 3}],
        hypotheses=claims,
        agreement=[{"points": slacp, "to": none, "within": 0.4}, {"points": snoop, "to": none, "within": 0.7}],
    )
    runs = {name: list(runs) for name, runs in campaign.runs.items()}
    # one run has failed, and of one point the first has not ended; two are missing
    run, row = runs["2-snoop"][3]
    runs["2-snoop"][3] = run, replace(row, status="failed", error="no such trace")
    del runs["0-none"][0]
    campaign = replace(campaign, runs=runs, planned=25)
    [*_, text] = write_report(campaign, tmp_path / "report")
    written = text.read_text().replace(campaign.plan.sha256, "HASH")
    (tmp_path / "report.md").write_text(written)
    assert fingerprint(written) == "7611b27bdf7d5b4e"
    other = replace(campaign, runs={**runs, "1-slacp": runs["1-slacp"][2:]})
    assert fingerprint(repr(compared(other, made(tmp_path / "other"))[0].rows)) == "1b26123633008fed"


@pytest.mark.slow
def test_plot_is_what_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [(label, tmp_path / label) for label in ("without", "with")]
    for seed, (_, folder) in enumerate(folders, 1):
        write_records(folder, seed)
    drawn: list[Any] = []
    monkeypatch.setattr(show.pyplot(), "close", drawn.append)
    show.plot(folders, tmp_path / "plot.png", "a title")
    monkeypatch.undo()
    assert fingerprint(figures._svg(drawn[0])) == "dee353b6cc410a17"
    assert fingerprint(show.terminal_plot(folders, 80).plain) == "134cac644684f2f3"
