"""Tier `model`: what a run leaves behind, who looks on, and how it is ended."""

from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

import pytest

from channel.replay import Outcome
from channel.trace import read_trace
from common.sides import SIDES
from telemetry.parquet import read_records
from testbed.cli import app
from testbed.model.model_run import run_model
from testbed.results.store import RunFolder
from testbed.run_hooks import Progress, RunHooks
from testbed.scenario.file import load
from testbed.scenario.resolver import resolve
from tests.harness.model_runs import kept, model
from tests.harness.steered import RecordingSink

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
LOSSY = ROOT / "scenarios" / "lossy-link.yaml"
SHIPPED = sorted((ROOT / "scenarios").glob("*.yaml"))
MS = 1_000_000
SECOND = 1_000_000_000
#: of a workload here, s
LONGEST_S = 10


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_shipped_scenario_runs(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    works = load(path).make_workloads()
    lasting = [place for place, work in enumerate(works) if (getattr(work, "duration_s", None) or 0) > LONGEST_S]
    changes = ["tcp=enhanced", *(f"workloads.{place}.duration_s={LONGEST_S}" for place in lasting)]
    arguments = ["run", str(path), "--tier", "model", "--out", str(tmp_path)]
    assert app.main([*arguments, *(word for change in changes for word in ("--set", change))]) == 0
    assert "tier model" in capsys.readouterr().out
    [folder] = tmp_path.iterdir()
    assert (folder / "plot.png").stat().st_size > 10_000


def test_records_agree_with_the_result(tmp_path: Path) -> None:
    run = model(
        channel={"per": 0.05},
        workloads=[
            {"kind": "bulk", "bytes": 400_000},
            {"kind": "short", "bytes": 20_000, "count": 3, "direction": "down"},
            {"kind": "onoff-udp", "duration_s": 2},
        ],
    )
    summary, folder = kept(run, tmp_path)
    bulk, short, udp = summary.flows
    flows, tcps, links = (read_records(folder, name) for name in ("flow", "tcp", "link"))
    for flow in summary.flows:
        rows = [row for row in flows if row["flow"] == flow.flow]
        assert rows[-1]["bytes_received"] == flow.bytes
        assert {row["host"] for row in rows} == {"h1" if flow is short else "h2"}
        assert all(after["time_ns"] > before["time_ns"] for before, after in pairwise(rows))
        whole = sum(after["goodput_bps"] * (after["time_ns"] - before["time_ns"]) for before, after in pairwise(rows))
        assert whole / 8e9 == pytest.approx(flow.bytes - rows[0]["bytes_received"])
    for flow in (bulk, short):
        rows = [row for row in tcps if row["flow"] == flow.flow]
        last = rows[-1]
        assert (last["bytes_acked"], last["retransmits"], last["timeouts"]) == (
            *(flow.bytes, flow.retransmits, flow.timeouts),
        )
        assert all(after["bytes_acked"] >= before["bytes_acked"] for before, after in pairwise(rows))
        assert all(after["time_ns"] > before["time_ns"] for before, after in pairwise(rows))
    assert not [row for row in tcps if row["flow"] == udp.flow]
    for side in SIDES:
        rows = [row for row in links if row["link"] == side]
        assert rows[0]["time_ns"] == 100 * MS
        for name in ("frames", "packets", "retransmissions", "fec_repairs", "residual_losses", "corruption_losses"):
            assert rows[-1][name] == getattr(summary.link[side], name), name


def test_a_trace_has_every_frame(tmp_path: Path) -> None:
    summary, folder = kept(model(channel={"per": 0.1}, trace=True), tmp_path)
    for side in SIDES:
        trace = read_trace(folder / f"trace-{side}.parquet")
        assert trace.outcome.count(Outcome.MISSED) == summary.link[side].corruption_losses
        assert len(trace.outcome) == summary.link[side].frames
        # the stations found each other before the run's time 0
        assert trace.time_ns[0] < 0


def test_interrupt_keeps_the_records_so_far(tmp_path: Path) -> None:
    shown: list[Progress] = []

    def interrupted(progress: Progress) -> None:
        shown.append(replace(progress))
        if progress.elapsed_s > 0:
            raise KeyboardInterrupt

    run = model(workloads=[{"kind": "bulk", "duration_s": 3000}], trace=True)
    folder = RunFolder.create(tmp_path, run)
    with pytest.raises(KeyboardInterrupt):
        run_model(resolve(run), folder, interrupted)
    assert shown[0].expected_s == 3000
    assert len(read_records(folder.path, "link")) > 0
    assert read_trace(folder.path / "trace-up.parquet").link == "up"
    assert not (folder.path / "summary.json").exists()


def test_hooks_get_every_record_and_the_wall_clock(tmp_path: Path) -> None:
    sink = RecordingSink()
    run = model()
    folder = RunFolder.create(tmp_path, run)
    run_model(resolve(run), folder, hooks=RunHooks([sink]))
    assert sink.epoch_ns > 0
    assert sink.closed
    for name in ("tcp", "flow", "link"):
        kept_rows = read_records(folder.path, name)
        assert [asdict(record) for record in sink.records if record.measurement == name] == kept_rows
    assert not [row for row in kept_rows if row["time_ns"] > 60 * SECOND]
