"""Grafana's boards on a real run: what a finished run has recorded fills every panel."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from dashboard.charts import ALL as CHARTS
from dashboard.grafana_boards.influxql import FEW
from telemetry.parquet import read_records
from telemetry.records import RECORD_TYPES, BeliefRecord
from tests.harness.grafana import BOARDS, SECOND, Filled, asking, database, keep
from tests.harness.live_runs import folder_of, run_all
from tests.harness.scenarios import scenario
from tests.hosts.harness import needs_network

pytestmark = [*needs_network, pytest.mark.patient]

#: filled where there is a radio; the last three where stations share a carrier
RADIO = {"SNR", "SNR and EVM, up", "SNR and EVM, down", "Mode"} | {
    f"{title}, {direction}"
    for title in (
        "Carrier frequency offset",
        "Receivers' level and gain",
        "Gaps in received samples",
        "Channel accesses",
        "Airtime on a shared carrier",
        "Late samples at the channel access",
    )
    for direction in ("up", "down")
}
#: filled by links that have beliefs
BELIEFS = {
    f"{chart.title}, {direction}"
    for chart in CHARTS.values()
    if all(line.record is BeliefRecord for line in chart.lines)
    for direction in ("up", "down")
}
EPOCH_NS = 1_790_000_000 * SECOND


@contextmanager
def recorded_run(place: Path, **changes: Any) -> Iterator[Filled]:
    """A run that is over, with its records in a database."""
    [summary] = run_all([scenario(**changes)], place / "runs")
    folder = folder_of(summary)
    records = (kind(**row) for kind in RECORD_TYPES for row in read_records(folder, kind.measurement))
    with database(place / "influxdb") as influx:
        yield keep(influx, folder.name, EPOCH_NS, records, place / "spool")


def test_a_finished_run_fills_every_panel_but_the_radios(tmp_path: Path) -> None:
    # two flows, so that there is a line of all
    work = [{"kind": "bulk", "duration_s": 5, "drain_s": 1}] * 2
    empty = set()
    with recorded_run(tmp_path, channel={"per": 0.1}, workloads=work) as run:
        for board in (board for name, board in BOARDS.items() if name != "campaigns"):
            for panel in asking(board):
                answers = {
                    target["query"]: run.rows(target["query"], board, panel["interval"]) for target in panel["targets"]
                }
                silent = {query for query, answer in answers.items() if not answer}
                if silent == set(answers) or any('"phy"' not in query for query in silent):
                    empty.add(panel["title"])
    assert empty == RADIO | BELIEFS


def test_goodput_is_never_above_what_is_on_the_air(tmp_path: Path) -> None:
    work = [{"kind": "bulk", "duration_s": 20, "drain_s": 1}]
    with recorded_run(tmp_path, tier="model", channel={"per": 0.1}, workloads=work) as run:
        # what a person sees at any moment of the run: headlines look at three seconds
        stats = [panel for panel in asking(BOARDS["overview"]) if panel["type"] == "stat"]
        goodput, on_air = (panel["targets"][0]["query"] for panel in stats[:2])
        moments = []
        for ends_ms in range(run.from_ms + 3000, run.to_ms - 1000, 100):
            looked_at = ends_ms - 3000, ends_ms
            [(_, [useful])] = run.rows(goodput, BOARDS["overview"], time_ms=looked_at)
            sent = sum(values[0] for _, values in run.rows(on_air, BOARDS["overview"], time_ms=looked_at))
            moments.append((useful, sent))
    assert len(moments) >= 150
    assert all(0 < useful < sent for useful, sent in moments), moments


@pytest.mark.parametrize("scheme", ["none", "slacp"])
def test_losses_are_those_of_the_summary(scheme: str, tmp_path: Path) -> None:
    work = [{"kind": "bulk", "duration_s": 40, "drain_s": 1}]
    channel = {"rate_bps": 2_000_000, "delay_ms": 25, "per": 0.05}
    changes = {"tier": "model", "link": {"scheme": scheme}, "channel": channel, "workloads": work}
    shown: dict[str, float] = {}
    with recorded_run(tmp_path, **changes) as run:
        for board, title in (
            ("overview", "Errors before and after repair, up"),
            ("overview", "Errors before and after repair, down"),
            ("overview", "Lost before repair"),
            ("overview", "Lost after repair"),
            ("compare", "Loss before repair"),
            ("compare", "Loss after repair"),
        ):
            [panel] = [panel for panel in asking(BOARDS[board]) if panel["title"] == title]
            for target in panel["targets"]:
                rows = run.rows(target["query"], BOARDS[board])
                for tags, values in rows if "GROUP BY time" not in target["query"] else ():
                    shown[f"{title}: {target['alias']} {tags['link']}"] = values[0]
    [folder] = (tmp_path / "runs").iterdir()
    links = json.loads((folder / "summary.json").read_text())["link"]
    expected: dict[str, float] = {}
    for direction, link in links.items():
        before, after = 100 * link["per"], 100 * link["residual_losses"] / link["packets"]
        expected |= {
            f"Errors before and after repair, {direction}: before, overall {direction}": before,
            f"Errors before and after repair, {direction}: after, overall {direction}": after,
            f"Lost before repair: $tag_link {direction}": before,
            f"Lost after repair: $tag_link {direction}": after,
        }
        for letter in "AB":
            expected[f"Loss before repair: {letter} $tag_link {direction}"] = before
            expected[f"Loss after repair: {letter} $tag_link {direction}"] = after
    assert shown == pytest.approx(expected, rel=0.02)
    assert {name: shown[name] for name in shown if name.startswith("Loss ")} == pytest.approx(
        {name: expected[name] for name in shown if name.startswith("Loss ")}, rel=1e-6
    )
    for name, each in BOARDS.items():
        for panel in asking(each):
            shares = any(
                '"part" / "whole"' in target["query"]
                and "GROUP BY time" in target["query"]
                and f">= {FEW} " in target["query"]
                for target in panel["targets"]
            )
            if panel["type"] == "timeseries" and shares:
                # of seconds that count alike
                assert "mean" not in panel["options"]["legend"]["calcs"], (name, panel["title"])


def test_goodput_from_zero_is_that_of_the_records(tmp_path: Path) -> None:
    work = [{"kind": "bulk", "duration_s": 12, "drain_s": 1}] * 2
    panel = next(panel for panel in asking(BOARDS["compare"]) if panel["title"] == "Goodput of all flows from zero")
    with recorded_run(tmp_path, tier="model", channel={"per": 0.05}, workloads=work) as run:
        query = run.interpolate(panel["targets"][0]["query"], {"run": [run.run], "other": ["none"]})
        [series] = run.influx.query(query)
    [folder] = (tmp_path / "runs").iterdir()
    # the run's epoch is a whole second
    windows: dict[int, dict[str, list[tuple[float, int]]]] = {}
    for row in read_records(folder, "flow"):
        at_s = row["time_ns"] / 1e9
        windows.setdefault(int(at_s), {}).setdefault(row["flow"], []).append((at_s, row["bytes_received"]))
    expected = []
    for flows in windows.values():
        spans = [(points[-1][0] - points[0][0], points[-1][1] - points[0][1]) for points in flows.values()]
        if any(span_s >= 0.5 for span_s, _ in spans):
            expected.append(sum(8e-6 * nbytes / span_s for span_s, nbytes in spans if span_s >= 0.5))
    assert len(expected) >= 12
    assert [row[2] for row in series.values] == pytest.approx(expected)
    # of a link of 2 Mbit/s, the last second among them
    assert all(0 < row[2] < 2.2 for row in series.values)


def test_a_link_that_tunes_itself_fills_the_panels_of_beliefs(tmp_path: Path) -> None:
    changes = {"link": {"scheme": "slacp-adaptive"}, "channel": {"rate_bps": 2_000_000, "delay_ms": 20, "per": 0.2}}
    work = [{"kind": "bulk", "duration_s": 15, "drain_s": 1}]
    with recorded_run(tmp_path, tier="model", tcp="user:sack", workloads=work, **changes) as run:
        shown = {
            panel["title"]: [run.rows(target["query"], BOARDS["link"])[0][1] for target in panel["targets"]]
            for panel in asking(BOARDS["link"])
            if panel["title"] in BELIEFS
        }
    assert set(shown) == BELIEFS
    [folder] = (tmp_path / "runs").iterdir()
    rows = [row for row in read_records(folder, "belief") if row["link"] == "up"]
    in_second = [[row for row in rows if row["time_ns"] // SECOND == second] for second in range(15)]
    assert shown["Believed loss, up"][0][:15] == pytest.approx(
        [100 * fmean(row["loss"] for row in some) for some in in_second]
    )
    # rises from record to record, in the second of the later one
    last = [some[-1] for some in in_second]
    expected = [
        (now["frames"] - then["frames"]) / (now["delivered"] - then["delivered"]) for then, now in pairwise(last)
    ]
    assert shown["Frames and rounds, up"][0][1:15] == pytest.approx(expected)
    assert 1.2 < fmean(expected) < 1.6
