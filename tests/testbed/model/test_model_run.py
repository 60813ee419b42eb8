"""Tier `model`: whole scenarios in virtual time, what their runs leave behind, and how they are ended."""

import json
import os
import re
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from channel.replay import Outcome
from channel.trace import read_trace
from common.sides import SIDES
from common.units import MS, SECOND
from hosts.tcp.profiles import USER_PROFILES
from hosts.workloads import WORKLOADS
from linklayer.schemes import SCHEMES
from tcpip.segment import Segment
from telemetry.parquet import read_records
from testbed.cli import app
from testbed.model.link_network import LAN_BPS
from testbed.model.model_run import run_model
from testbed.model.watch import Watch
from testbed.results.show import warnings
from testbed.results.store import RunFolder
from testbed.run_hooks import Progress, RunHooks
from testbed.scenario.file import load
from testbed.scenario.resolver import resolve
from testbed.scenario.schema import Scenario
from testbed.simulation import simulate
from tests.harness.live_runs import Capture, fadelab
from tests.harness.model_runs import kept, memory_used, model
from tests.harness.scenarios import written
from tests.harness.steered import RecordingSink

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
SHIPPED = sorted((ROOT / "scenarios").glob("*.yaml"))
#: of a workload of a shipped scenario here, s
LONGEST_S = 10


class Log(Watch):
    """Keeps what a watch sees."""

    def __init__(self) -> None:
        self.sent_segments: list[tuple[str, int, int]] = []
        self.acks: list[tuple[str, int]] = []
        self.deliveries: list[tuple[str, int, int]] = []

    def sent(self, flow: str, segment: Segment, now: int) -> None:
        self.sent_segments.append((flow, segment.length, now))

    def received(self, flow: str, segment: Segment, now: int) -> None:
        self.acks.append((flow, now))

    def delivered(self, flow: str, nbytes: int, now: int) -> None:
        self.deliveries.append((flow, nbytes, now))


def test_a_transfer_on_a_clean_path_takes_the_time_it_must() -> None:
    run = model(
        tcp="reference",
        link={"scheme": "none"},
        channel={"rate_bps": 1_000_000, "delay_ms": 30, "down": {"rate_bps": 500_000}},
        workloads=[{"kind": "bulk", "bytes": 1000}],
    )

    def crossing(nbytes: int, rate_bps: int) -> float:
        # two LANs, and the hop with a CRC of 4 octets
        return 2 * nbytes * 8 / LAN_BPS + (nbytes + 4) * 8 / rate_bps + 0.030

    up, down = 1_000_000, 500_000
    # SYN, SYN-ACK, one segment, which has the FIN, too, and the other FIN
    wanted = crossing(44, up) + crossing(44, down) + crossing(1040, up) + crossing(40, down)
    # nothing is rounded but to whole ns, once per wire
    assert simulate(run).duration_s == pytest.approx(wanted, rel=0, abs=12e-9)


def test_the_rate_of_a_long_transfer_is_the_links() -> None:
    summary = simulate(model(link={"scheme": "none"}, workloads=[{"kind": "bulk", "duration_s": 30}]))
    # from slow start on the link is never idle; a segment of 1448 octets and its headers, timestamps and CRC
    assert summary.goodput_bps == pytest.approx(summary.throughput_bps * 1448 / 1504, rel=0.02)
    assert 0.97 * 2e6 < summary.throughput_bps <= 2e6
    assert summary.link["up"].corruption_losses == 0


def in_another_process(run: Scenario, folder: Path, hash_seed: str) -> Path:
    folder.mkdir()
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    path = written(folder / "scenario.yaml", run)
    status, _, err = fadelab("run", path, "--out", folder / "runs", "--json", env=environment)
    assert status == 0, err
    [made] = (folder / "runs").iterdir()
    return made


def test_the_files_of_two_processes_are_equal_to_the_byte(tmp_path: Path) -> None:
    run = model(
        trace=True,
        channel={"errors": "high"},
        workloads=[
            {"kind": "bulk", "duration_s": 5, "flows": 3},
            {"kind": "onoff-udp", "duration_s": 5, "direction": "down"},
            {"kind": "short", "bytes": 5000, "count": 4, "gap_ms": 20},
        ],
    )
    one, two = (in_another_process(run, tmp_path / name, name) for name in ("1", "2"))
    other = in_another_process(run.model_copy(update={"seed": 2}), tmp_path / "3", "1")
    names = sorted(path.name for path in one.iterdir())
    assert names == [
        *("flow.parquet", "link.parquet", "manifest.json", "scenario.yaml", "summary.json", "tcp.parquet"),
        *("trace-down.parquet", "trace-up.parquet"),
    ]
    assert [path.name for path in sorted(two.iterdir())] == names
    for name in set(names) - {"manifest.json"}:
        assert (one / name).read_bytes() == (two / name).read_bytes(), name
        assert (one / name).read_bytes() != (other / name).read_bytes(), name


def test_what_is_kept_and_who_looks_on_change_nothing(tmp_path: Path) -> None:
    run = model(channel={"errors": "high"}, workloads=[{"kind": "short", "bytes": 30_000, "count": 3}], trace=True)
    bare = simulate(run)
    assert simulate(run, Log()) == bare
    summary, folder = kept(run, tmp_path)
    # delays of packets are counted where a run is kept
    assert replace(summary, run=bare.run, folder=None, quality=bare.quality) == bare
    assert (summary.run, summary.folder) == (folder.name, str(folder))


def test_a_recorded_channel_repeats_the_run(tmp_path: Path) -> None:
    errors = {"model": "uniform", "good_ms": [50, 400], "bad_ms": [10, 50]}
    run = model(channel={"errors": errors}, workloads=[{"kind": "bulk", "bytes": 300_000}], trace=True)
    wanted, folder = kept(run, tmp_path)
    assert wanted.link["up"].corruption_losses > 0
    replayed = {
        side: {"errors": {"model": "trace", "path": str(folder / f"trace-{side}.parquet"), "by": "index"}}
        for side in SIDES
    }
    again = model(channel=replayed, workloads=[{"kind": "bulk", "bytes": 300_000}])
    made, _ = kept(again, tmp_path)
    assert replace(made, run=wanted.run, folder=wanted.folder) == wanted


def test_udp_on_the_fast_channel_is_not_retransmitted() -> None:
    udp = {"kind": "onoff-udp", "rate_bps": 400_000, "packet_bytes": 500, "off_ms": 0, "duration_s": 10}
    reliable: dict[str, Any] = {"protocols": [], "dscp": []}
    fast = simulate(model(channel={"per": 0.1}, workloads=[udp]))
    slow = simulate(model(channel={"per": 0.1}, link={"fast": reliable}, workloads=[udp]))
    # 100 packets a second of 472 octets
    assert fast.flows[0].bytes == pytest.approx(0.9 * 1000 * 472, rel=0.05)
    assert slow.flows[0].bytes > 0.98 * 1000 * 472
    assert (fast.link["up"].retransmissions, fast.flows[0].intact) == (0, None)
    assert slow.link["up"].retransmissions > 50
    assert (fast.duration_s, fast.flows[0].finished) == (10, True)


def test_short_transfers_follow_one_another() -> None:
    run = model(workloads=[{"kind": "short", "bytes": 20_000, "count": 5, "gap_ms": 300, "start_s": 1}])
    log = Log()
    summary = simulate(run, log)
    [flow] = summary.flows
    assert (flow.bytes, len(flow.transfer_s), flow.finished, flow.intact) == (100_000, 5, True, True)
    assert flow.start_s == 1.0
    assert flow.end_s == pytest.approx(1.0 + sum(flow.transfer_s) + 4 * 0.3)
    assert flow.duration_s == pytest.approx(sum(flow.transfer_s))


def test_a_connection_learns_from_the_one_before() -> None:
    changes = {
        "link": {"scheme": "none"},
        "channel": {"bare_buffer_bytes": 12_000},
        "workloads": [{"kind": "short", "bytes": 300_000, "count": 2}],
    }
    alone, learnt = (simulate(model(tcp=tcp, **changes)) for tcp in ("enhanced", "enhanced-cbi"))
    assert learnt.flows[0].transfer_s[0] == alone.flows[0].transfer_s[0]
    # the second one's slow start ends before the buffer overflows
    assert learnt.retransmissions < alone.retransmissions


def test_a_duration_counts_what_was_read_in_it() -> None:
    log = Log()
    summary = simulate(model(workloads=[{"kind": "bulk", "duration_s": 4, "start_s": 2}]), log)
    [flow] = summary.flows
    assert (flow.start_s, flow.end_s, summary.duration_s) == (2, 6, 4)
    assert flow.bytes == max(nbytes for _, nbytes, now in log.deliveries if now <= 6 * SECOND)
    assert log.deliveries[-1][2] > 6 * SECOND


def test_segments_fill_the_mtu() -> None:
    log = Log()
    simulate(model(tcp="reference", mtu=1000), log)
    assert max(length for _, length, _ in log.sent_segments) == 960


def test_a_watch_sees_times_of_the_run() -> None:
    log = Log()
    summary = simulate(model(workloads=[{"kind": "bulk", "bytes": 50_000, "start_s": 3}]), log)
    assert log.sent_segments[0][2] == 3 * SECOND
    assert {flow for flow, *_ in (*log.sent_segments, *log.acks, *log.deliveries)} == {"bulk"}
    assert log.deliveries[-1][1] == 50_000
    assert log.deliveries[-1][2] < summary.flows[0].end_s * 1e9


@pytest.mark.parametrize("name", sorted(USER_PROFILES.keys() - {"enhanced-cbi"}))
def test_every_tcp_runs_with_and_without_the_prefix(name: str) -> None:
    one, two = (simulate(model(tcp=tcp, channel={"per": 0.02})) for tcp in (name, f"user:{name}"))
    assert one.finished
    assert replace(two, tcp=name) == one


@pytest.mark.parametrize(("h2", "nbytes"), [(None, 12), ("reference", 0)])
def test_segments_have_timestamps_where_both_hosts_speak_them(h2: str | None, nbytes: int) -> None:
    log = Log()
    assert simulate(model(tcp="sack", tcp_h2=h2), log).finished
    assert min(1460 - length for _, length, _ in log.sent_segments if length > 1400) == nbytes


NO_SACK = "was NewReno, as SACK was not agreed"
NO_ACCECN = "prague was Reno, as accurate ECN was not agreed"


@pytest.mark.parametrize(
    ("tcp", "h2", "said"),
    [
        ("prague", None, None),
        ("prague", "sack", NO_ACCECN),
        ("sack", "prague", None),
        ("sack-prague", None, NO_ACCECN),
        ("sack", "newreno", f"loss recovery sack {NO_SACK}"),
        ("newreno", "sack", None),
        ("prague", "newreno", f"loss recovery rack {NO_SACK}; {NO_ACCECN}"),
        ("lt-tcp", "sack", "LT-TCP was without FEC, as its option was not agreed"),
    ],
)
def test_what_tcp_was_in_place_of_itself_is_in_the_result_and_a_warning(
    tcp: str, h2: str | None, said: str | None, tmp_path: Path
) -> None:
    summary, folder = kept(model(tcp=tcp, tcp_h2=h2), tmp_path)
    [stored] = json.loads((folder / "summary.json").read_text())["flows"]
    assert stored.get("fallback") == summary.flows[0].fallback == said
    assert warnings([summary]) == ([] if said is None else [f"{summary.run}: flow {stored['flow']}: {said}"])


def test_what_is_under_way_fits_the_receive_buffer() -> None:
    class InFlight(Log):
        """Keeps the most octets that were sent and not acknowledged."""

        most, end, acked = 0, 0, 0

        def sent(self, flow: str, segment: Segment, now: int) -> None:
            if segment.length:
                self.end = max(self.end, segment.seq + segment.length)
                self.most = max(self.most, self.end - self.acked)

        def received(self, flow: str, segment: Segment, now: int) -> None:
            self.acked = segment.ack

    free, bound = InFlight(), InFlight()
    assert simulate(model(tcp="reference"), free).finished
    assert simulate(model(tcp="reference", receive_buffer_bytes=8192), bound).finished
    assert 8192 - 1460 < bound.most <= 8192 < free.most


def test_a_run_ends_at_its_limit_or_with_the_earlier_of_size_and_duration() -> None:
    summary = simulate(model(workloads=[{"kind": "bulk", "bytes": 100_000_000}], limit_s=7))
    assert (summary.finished, summary.duration_s, summary.flows[0].end_s) == (False, 7, 7)
    assert 0 < summary.flows[0].bytes < 2e6 * 7 / 8
    assert summary.intact
    assert simulate(model(workloads=[{"kind": "bulk", "bytes": 100_000, "duration_s": 60}])).duration_s < 5


def test_a_link_that_breaks_ends_a_run_at_its_limit() -> None:
    # the session is made in the first good state; then nothing crosses for an hour
    dead = {"model": "uniform", "good_ms": [3000, 3000], "bad_ms": [3_600_000, 3_600_000]}
    for scheme in SCHEMES:
        summary = simulate(
            model(
                link={"scheme": scheme},
                channel={"errors": dead},
                limit_s=600,
                workloads=[{"kind": "bulk", "bytes": 10_000_000}],
            )
        )
        assert (summary.finished, summary.duration_s) == (False, 600)
        assert summary.timeouts > 3


OF_A_SLOW_LINK: dict[str, Any] = {
    # a small window, so that all that SLACP keeps is in use within the first hour
    "slacp": {"window": 64},
    # a frame takes a second, and so does its acknowledgement
    "arq": {"resend_after_ms": 4000},
    "fec": {"fragments": 3, "data_fragments": 2},
    "hybrid": {"resend_after_ms": 4000, "fragments": 3, "data_fragments": 2},
}


@pytest.mark.parametrize(
    ("scheme", "eln"), [*((scheme, "none") for scheme in SCHEMES), ("none", "ends"), ("none", "base")]
)
def test_memory_of_a_slow_flow_does_not_grow_with_time(scheme: str, eln: str) -> None:
    run = model(
        tcp="reference",
        link={"scheme": scheme, "eln": eln, "ip_queue_bytes": 20_000, **OF_A_SLOW_LINK},
        channel={"rate_bps": 4800, "delay_ms": 200, "per": 0.1},
        mtu=576,
        # with link FEC alone a quarter of the packets is lost: TCP is silent for minutes around the last look
        workloads=[{"kind": "bulk", "duration_s": 3 * 3600 + 900}],
        limit_s=4 * 3600,
    )
    first, last = memory_used(run, (3600, 3 * 3600 - 60))
    assert last < 1.1 * first


def test_link_handshake_counts_for_the_link_but_not_for_the_run() -> None:
    log = Log()
    summary = simulate(model(), log)
    assert log.sent_segments[0][1:] == (0, 0)
    assert summary.events < sum(summary.link[side].frames for side in SIDES)


def test_the_documents_examples_run(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.chdir(ROOT)
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "model.md").read_text(), re.DOTALL)
    assert len(examples) == 2
    for example in examples:
        exec(example, {})
    duration_s, figures = capsys.readouterr().out.splitlines()
    assert float(duration_s) > 70
    nbytes, drops, corrupted = map(int, figures.split())
    assert nbytes > 100_000
    assert drops + corrupted > 0


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_shipped_scenario_runs(path: Path, tmp_path: Path, capsys: Capture) -> None:
    works = load(path).make_workloads()
    arguments = ["run", str(path), "--tier", "model", "--out", str(tmp_path)]
    if not all(WORKLOADS[work.kind].simulated for work in works):
        # programs of others and MPTCP need Linux, and are refused
        assert app.main([*arguments, "--set", "tcp=enhanced"]) == 2
        assert "tier model" in capsys.readouterr().err
        return
    lasting = [place for place, work in enumerate(works) if (getattr(work, "duration_s", None) or 0) > LONGEST_S]
    changes = ["tcp=enhanced", *(f"workloads.{place}.duration_s={LONGEST_S}" for place in lasting)]
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
        last = [rows[-1][name] for name in ("bytes_acked", "retransmits", "timeouts")]
        assert last == [flow.bytes, flow.retransmits, flow.timeouts]
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
