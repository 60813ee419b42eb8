"""Real runs: namespaces, TAPs, kernel TCP and the emulated radio.

A loaded machine may be late, so `on_time` is not asked for here; verdicts and counts do not depend on it.
"""

import itertools
import json
import signal
import statistics
from datetime import datetime
from pathlib import Path

import pytest

from channel.replay import Outcome, Trace
from channel.trace import read_trace, write_trace
from telemetry.parquet import read_records
from testbed.cli import app
from testbed.live.children import ChildError
from testbed.results.summary import Summary
from testbed.running import run_once
from testbed.scenario.file import load
from tests.harness.live_runs import (
    Capture,
    children_once_up,
    done,
    finish,
    folder_of,
    left_behind,
    records_of,
    run_all,
    run_schemes,
    running,
    start,
)
from tests.harness.scenarios import scenario, written
from tests.harness.steered import ENDLESS
from tests.harness.waiting import wait_for
from tests.hosts.harness import needs_network

pytestmark = [*needs_network, pytest.mark.light]

PER = 0.05
BYTES = 500_000
SCHEMES = ("none", "slacp")
AIR = {"rate_bps": 4_000_000, "delay_ms": 15}


@pytest.fixture(scope="module")
def transfers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Summary]:
    """The same transfer at the same seed, without and with SLACP."""
    work = [{"kind": "bulk", "bytes": BYTES}]
    folder = tmp_path_factory.mktemp("runs")
    return run_schemes(SCHEMES, folder, seed=4, channel={**AIR, "per": PER}, workloads=work)


@pytest.fixture(params=SCHEMES)
def transfer(request: pytest.FixtureRequest, transfers: dict[str, Summary]) -> Summary:
    return transfers[request.param]


def test_a_transfer_by_size_is_intact_and_its_figures_agree(transfer: Summary) -> None:
    [flow] = transfer.flows
    assert (transfer.finished, transfer.intact) == (flow.finished, flow.intact) == (True, True)
    assert flow.bytes == BYTES
    assert transfer.goodput_bps == pytest.approx(BYTES * 8 / transfer.duration_s)
    assert transfer.goodput_bps == pytest.approx(flow.goodput_bps)
    assert transfer.goodput_bps <= transfer.throughput_bps <= transfer.capacity_bps * 1.05
    assert transfer.capacity_bps == AIR["rate_bps"]
    assert transfer.retransmissions == flow.retransmits
    assert transfer.events > 0
    assert transfer.on_time == (transfer.late_events <= 0.01 * transfer.events)


def test_the_air_lost_what_it_was_told_to(transfer: Summary) -> None:
    for link in transfer.link.values():
        assert link.frames > 50
        # 5 standard deviations of a binomial; this seed's draws stay within 2 for any number of frames up to 5000
        assert abs(link.per - PER) <= 5 * (PER * (1 - PER) / link.frames) ** 0.5
        assert link.corruption_losses == round(link.per * link.frames)


def test_records_come_at_the_probes_rate(transfer: Summary) -> None:
    folder = folder_of(transfer)
    for measurement, key, value in (("tcp", "flow", "bulk"), ("flow", "flow", "bulk"), ("link", "link", "up")):
        rows = [row for row in read_records(folder, measurement) if row[key] == value]
        times = [row["time_ns"] / 1e9 for row in rows]
        assert times == sorted(times)
        # a busy machine may miss one now and then
        assert statistics.median(b - a for a, b in itertools.pairwise(times)) <= 0.11
    assert read_records(folder, "flow")[-1]["bytes_received"] == BYTES
    assert read_records(folder, "tcp")[-1]["bytes_acked"] == BYTES


def test_link_records_end_with_the_results_counts(transfer: Summary) -> None:
    for side, link in transfer.link.items():
        last = [row for row in read_records(folder_of(transfer), "link") if row["link"] == side][-1]
        for name in ("frames", "retransmissions", "fec_frames", "residual_losses", "corruption_losses"):
            assert last[name] == getattr(link, name)


def test_the_trace_has_every_frame(transfer: Summary) -> None:
    for side, link in transfer.link.items():
        trace = read_trace(folder_of(transfer) / f"trace-{side}.parquet")
        assert len(trace) == link.frames
        assert sum(outcome is not Outcome.OK for outcome in trace.outcome) == link.corruption_losses
        assert (trace.link, trace.producer) == (side, "fadelab emulated")
        # a row says when its frame started: the frame before had ended by then
        for (at, nbytes), (later, _) in itertools.pairwise(zip(trace.time_ns, trace.nbytes, strict=True)):
            assert later >= at + nbytes * 8 * 1_000_000_000 // AIR["rate_bps"]


def test_the_folder_has_it_all(transfer: Summary) -> None:
    folder = folder_of(transfer)
    assert {path.name for path in folder.iterdir()} == {
        *("scenario.yaml", "manifest.json", "summary.json"),
        *("tcp.parquet", "flow.parquet", "link.parquet", "station.parquet", "trace-up.parquet", "trace-down.parquet"),
    }
    stored = json.loads((folder / "summary.json").read_text())
    assert (stored["run"], stored["goodput_bps"]) == (folder.name, transfer.goodput_bps)
    manifest = json.loads((folder / "manifest.json").read_text())
    ahead = datetime.fromisoformat(manifest["epoch"]) - datetime.fromisoformat(manifest["started"])
    assert 0 < ahead.total_seconds() < 30
    assert load(folder / "scenario.yaml").link.scheme == transfer.scheme


def test_a_run_that_does_not_end_is_ended(tmp_path: Path) -> None:
    [result] = run_all([scenario(limit_s=1, workloads=[{"kind": "bulk", "bytes": 10_000_000}])], tmp_path)
    assert (result.finished, result.intact) == (False, True)
    # by its limit, not by its transfer, which would take 40 s
    assert 0 < result.duration_s < 20
    assert 0 < result.goodput_bps < result.capacity_bps


def test_a_child_that_fails_ends_the_run_with_what_it_said(tmp_path: Path) -> None:
    path = tmp_path / "air.parquet"
    write_trace(path, Trace(list(range(20)), [100] * 20, [Outcome.OK] * 20))
    errors = {"model": "trace", "path": str(path), "by": "index", "loop": False}
    failing = scenario(channel={**AIR, "up": {"errors": errors}}, workloads=ENDLESS)
    with pytest.raises(ChildError) as caught:
        run_once(failing, tmp_path / "runs", lambda progress: None)
    assert str(caught.value).startswith("station st: ")
    assert "the trace is used up" in str(caught.value)
    assert "\n" not in str(caught.value)
    # _nothing_left_behind does the rest


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    return written(tmp_path / "endless.yaml", scenario(workloads=ENDLESS))


@pytest.mark.parametrize("command", ["run", "demo"])
def test_ctrl_c_ends_a_run_tidily(command: str, endless: Path, tmp_path: Path) -> None:
    args = [endless] if command == "run" else ["--seconds", "600"]
    process = start(command, *args, "--out", tmp_path / "runs")
    try:
        # of a demo's two runs, there may be one at a time
        children = children_once_up(process, 4)
    finally:
        process.send_signal(signal.SIGINT)
        status, _, err = finish(process)
    assert status == 130
    assert err.strip() == "fadelab: interrupted"
    assert left_behind(process.pid) == []
    assert running(children) == []


def test_clean_removes_all_leftovers_of_a_killed_run(endless: Path, tmp_path: Path, capsys: Capture) -> None:
    process = start("run", endless, "--out", tmp_path / "runs")
    try:
        children = children_once_up(process, 4)
        [run] = [record["run"] for record in records_of(process.pid)]
    finally:
        process.kill()
        finish(process)
    # its processes end by themselves
    wait_for(lambda: not running(children))
    assert len(left_behind(process.pid)) == 5
    assert run in done(capsys, "clean", "--dry-run")
    assert len(left_behind(process.pid)) == 5
    assert run in done(capsys, "clean")
    assert left_behind(process.pid) == []


@pytest.mark.parametrize(("flags", "status"), [([], 2), (["--allow-late"], 0)])
def test_a_late_run_fails_unless_that_is_allowed(
    flags: list[str], status: int, tmp_path: Path, capsys: Capture
) -> None:
    hasty = scenario(
        channel={**AIR, "down": {"rate_bps": 1_000_000}},
        timing={"late_bound_ms": 0.001, "late_fraction": 0},
        workloads=[{"kind": "short", "direction": "down", "bytes": 5000, "count": 2}],
    )
    path = written(tmp_path / "hasty.yaml", hasty)
    assert app.main(["run", str(path), "--json", "--out", str(tmp_path / "runs"), *flags]) == status
    shown = capsys.readouterr()
    result = json.loads(shown.out)
    assert (result["on_time"], result["late_events"] > 0) == (False, True)
    # the records say when
    counts = {row["station"]: row["late_events"] for row in read_records(Path(result["folder"]), "station")}
    assert sum(counts.values()) == result["late_events"]
    # late, but all else holds
    [flow] = result["flows"]
    assert (flow["direction"], flow["bytes"], len(flow["transfer_s"])) == ("down", 10_000, 2)
    assert (result["intact"], result["capacity_bps"]) == (True, 1_000_000)
    assert (
        result["goodput_bps"]
        <= result["throughput_bps"]
        == pytest.approx(result["link"]["down"]["throughput_bps"], rel=0.5)
    )
    [summary] = (tmp_path / "runs").glob("*/summary.json")
    assert json.loads(summary.read_text()) == result
    assert shown.err.count("\n") == 1
    assert shown.err.startswith("warning: " if flags else "fadelab: ")
    assert "events were late" in shown.err
    assert ("--allow-late" in shown.err) is not bool(flags)
