"""Figures of hand-made results, as they were when somebody last looked at them: a changed one is to be looked at."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from telemetry.parquet import ParquetSink
from telemetry.records import FlowRecord, LinkRecord, PhyRecord, TcpRecord
from testbed.reports import figures
from testbed.reports.numbers import Campaigned
from testbed.results import show
from tests.harness.campaigns import done, plan
from tests.harness.records import recorded

REFERENCE = [{"source": "Kojo 2004", "metric": "duration_s", "at": {"link.scheme": "slacp"}, "value": 0.5}]


def write_records(folder: Path, seed: int) -> None:
    """Four seconds of a run: two flows, a link in both directions, a radio."""
    folder.mkdir(parents=True)
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
                losses = {
                    "corruption_losses": 3 * step * number,
                    "residual_losses": step,
                    "congestion_losses": 2 * step,
                }
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
            (run := planned.run(point, n), done(run.name, **_figures(point.index, n))) for n in range(3)
        ]
        write_records(folder / "runs" / runs[point.name][0][0].name, point.index + 1)
    return Campaigned(folder, planned, runs, sum(map(len, runs.values())))


def _figures(point: int, n: int) -> dict[str, float | None]:
    return {"duration_s": 1 + point + (n * n) / 3, "goodput_bps": None if point == 1 else 1e6 * (n + 2)}


def fingerprint(*texts: str) -> str:
    return hashlib.sha256("".join(texts).encode()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("changes", "names", "expected"),
    [
        ({"reference": REFERENCE}, 6, "e6a6f4d5c32615d8"),
        (
            {"sweep": {"grid": {"link.scheme": ["none", "slacp"], "channel.per": [n / 100 for n in range(7)]}}},
            6,
            "b8c432e1ba8c6526",
        ),
        ({"sweep": None}, 6, "2fcb1c0f96b26ff2"),
    ],
    ids=["reference", "two keys", "no sweep"],
)
def test_figures_are_what_they_were(changes: dict[str, Any], names: int, expected: str, tmp_path: Path) -> None:
    drawn = list(figures.figures(made(tmp_path, **changes)))
    for picture in drawn:
        (tmp_path / f"{picture.name}.svg").write_text(picture.svg)
    assert len(drawn) == names
    assert fingerprint(*(each.name + each.caption + each.svg for each in drawn)) == expected


def test_plot_is_what_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [(label, tmp_path / label) for label in ("without", "with")]
    for seed, (_, folder) in enumerate(folders, 1):
        write_records(folder, seed)
    drawn: list[Any] = []
    monkeypatch.setattr(show.pyplot(), "close", drawn.append)
    show.plot(folders, tmp_path / "plot.png", "a title")
    monkeypatch.undo()
    assert fingerprint(figures._svg(drawn[0])) == "c9af9c8df78aaa56"
    assert fingerprint(show.terminal_plot(folders, 80).plain) == "134cac644684f2f3"
