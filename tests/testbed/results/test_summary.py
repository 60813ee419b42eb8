"""Results from hand-made reports."""

import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from common.sides import Side
from hosts.engine.results import EndReport, TcpReceived, TcpSent, UdpReceived, UdpSent
from hosts.engine.split_pairs import SplitCounters
from hosts.workloads.bulk import Bulk
from hosts.workloads.onoff_udp import OnOffUdp
from hosts.workloads.short import Short
from linklayer.station_counts import Lateness, StationCounts, StationFinal
from telemetry.records import RECORD_TYPES, AccessRecord
from testbed.results.end_reports import EndReports
from testbed.results.quality import Percentiles
from testbed.results.summary import (
    AccessSummary,
    FlowSummary,
    LinkSummary,
    Summary,
    rise,
    summarize,
    summarize_access,
    summarize_flow,
    summarize_link,
)
from testbed.scenario.resolver import resolve
from tests.harness.scenarios import scenario, summary

S = 1_000_000_000
LATENESS = Lateness(events=100, late_events=0, max_ns=0)


def sender(index: int = 0, **values: Any) -> EndReport:
    sent = TcpSent(
        bytes=1000,
        sha256="aa",
        started_ns=S // 2,
        connected_ns=S,
        finished_ns=5 * S // 2,
        bytes_acked=1000,
        bytes_sent=1300,
        retransmits=3,
        timeouts=1,
        error=None,
    )
    return EndReport(host="h1", flow="f", kind="", index=index, result=replace(sent, **values))


def receiver(index: int = 0, **values: Any) -> EndReport:
    received = TcpReceived(
        bytes=1000,
        sha256="aa",
        intact=True,
        accepted_ns=S,
        first_byte_ns=S,
        last_byte_ns=2 * S,
        finished_ns=2 * S,
        error=None,
    )
    return EndReport(host="h2", flow="f", kind="", index=index, result=replace(received, **values))


def test_a_run_keeps_the_delays_of_a_flow_and_not_those_of_each_transfer() -> None:
    reports = EndReports(sender(index, round_trips=((1000 + index % 7, 3),)) for index in range(2000))
    reports.append(receiver(delays=((5, 1),)))
    assert len(reports) == 2001
    assert {report.result for report in reports[:-1]} == {sender().result}
    assert reports[-1] == receiver()
    assert reports.delays("f", [UdpSent, TcpSent]) == tuple((1000 + n, 3 * len(range(n, 2000, 7))) for n in range(7))
    assert reports.delays("f", [TcpReceived]) == ((5, 1),)
    assert reports.delays("f", [UdpSent]) == reports.delays("other", [TcpSent]) == ()


def datagrams(nbytes: int) -> EndReport:
    received = UdpReceived(
        packets=1,
        highest_sequence=0,
        bytes=nbytes,
        first_byte_ns=S,
        last_byte_ns=S,
        finished_ns=2 * S,
        delay_ms_mean=1.0,
        delay_ms_max=1.0,
        error=None,
    )
    return EndReport(host="h2", flow="f", kind="", index=0, result=received)


def series(count: int = 3) -> list[EndReport]:
    """The reports of the first transfers of three, in no order."""
    reports = []
    for index in sorted(range(count), key=lambda index: index != 2):
        start = index * 3 * S
        reports += [
            sender(index, started_ns=start, finished_ns=start + (index + 1) * S // 2, sha256=str(index)),
            receiver(index, sha256=str(index)),
        ]
    return reports


UDP_SENT = UdpSent(bytes=2500, packets=5, unsent=0, started_ns=S, finished_ns=5 * S, error=None)
SIZED, SHORT, UDP = Bulk(bytes=1000), Short(bytes=1000, count=3), OnOffUdp(duration_s=4.0, start_s=1.0)
TIMED, TIMED_LATER = Bulk(duration_s=4.0), Bulk(duration_s=4.0, start_s=3.0)
EITHER = Bulk(bytes=1000, duration_s=10.0)
CUT = [sender(error="stopped", sha256="cc"), receiver(bytes=400, error="reset", sha256="dd")]
AT_END = [sender(), receiver(bytes_at_duration=900)]
UNDRAINED, BROKEN = sender(error="not drained in time"), receiver(error="reset", sha256="bb", bytes_at_duration=700)
UNCONNECTED = sender(bytes=0, error="not connected within the duration")
DATAGRAMS = [EndReport(host="h1", flow="f", kind="", index=0, result=UDP_SENT), datagrams(2000)]
CASES: dict[str, tuple[Any, list[EndReport], float, tuple[Any, ...]]] = {
    # from the first SYN to the end
    "by size": (Bulk(bytes=1000, start_s=0.5), [receiver(), sender()], 9.0, (1000, 0.5, 2.5, 2, 4000, True, True)),
    "the receiver says no": (SIZED, [sender(), receiver(intact=False)], 9.0, (1000, 0.5, 2.5, 2, 4000, True, False)),
    "hashes differ": (SIZED, [sender(), receiver(sha256="bb")], 9.0, (1000, 0.5, 2.5, 2, 4000, True, False)),
    "without its receiver": (SIZED, [sender()], 9.0, (0, 0.5, 2.5, 2, 0, True, False)),
    "cut: what arrived counts": (Bulk(bytes=1000, start_s=1), CUT, 5.0, (400, 1, 5, 4, 800, False, True)),
    "not begun": (Bulk(bytes=1000, start_s=7), [], 5.0, (0, 7, 7, 0, 0, False, True)),
    # what was read at its end counts
    "timed": (TIMED, [sender(finished_ns=6 * S), AT_END[1]], 6.1, (900, 0, 4, 4, 1800, True, True)),
    "timed, later": (TIMED_LATER, AT_END, 8.0, (900, 3, 7, 4, 1800, True, True)),
    "timed, cut": (TIMED_LATER, AT_END, 5.0, (900, 3, 5, 2, 3600, False, True)),
    "undrained": (TIMED, [UNDRAINED, BROKEN], 9.0, (700, 0, 4, 4, 1400, True, True)),
    "undrained and spoilt": (TIMED, [UNDRAINED, receiver(intact=False)], 9.0, (0, 0, 4, 4, 0, True, False)),
    "not connected": (TIMED, [UNCONNECTED], 4.0, (0, 0, 4, 4, 0, True, True)),
    "the size is the earlier": (
        EITHER,
        [sender(), receiver(bytes_at_duration=1000)],
        3.0,
        (1000, 0.5, 2.5, 2, 4000, True, True),
    ),
    "the duration is the earlier": (
        EITHER,
        [sender(finished_ns=12 * S), AT_END[1]],
        12.0,
        (900, 0, 10, 10, 720, True, True),
    ),
    # without the gaps
    "short transfers": (SHORT, series(), 20.0, (3000, 0, 7.5, 3, 8000, True, True)),
    "a series cut short": (SHORT, series(2), 8.0, (2000, 0, 8, 8, 2000, False, True)),
    "UDP is neither intact nor not": (UDP, DATAGRAMS, 6.0, (2000, 1, 5, 4, 4000, True, None)),
    "UDP cut": (UDP, [datagrams(500)], 3.0, (500, 1, 3, 2, 2000, False, None)),
}


@pytest.mark.parametrize(("work", "reports", "ends_s", "expected"), CASES.values(), ids=CASES)
def test_summary_of_a_flow(work: Any, reports: list[EndReport], ends_s: float, expected: tuple[Any, ...]) -> None:
    flow = summarize_flow(work, "f", reports, ends_s)
    assert (flow.bytes, flow.start_s, flow.end_s, flow.duration_s) == expected[:4]
    assert (flow.goodput_bps, flow.finished, flow.intact) == expected[4:]


@pytest.mark.parametrize(
    ("case", "counts"),
    [
        ("by size", (3, 1, 1300, ())),
        ("short transfers", (9, 3, 3900, (0.5, 1.0, 1.5))),
        ("a series cut short", (6, 2, 2600, (0.5, 1.0))),
        ("UDP is neither intact nor not", (0, 0, 0, ())),
    ],
)
def test_counts_and_times_of_transfers(case: str, counts: tuple[Any, ...]) -> None:
    work, reports, ends_s, _ = CASES[case]
    flow = summarize_flow(work, "f", reports, ends_s)
    assert (flow.retransmits, flow.timeouts, flow.bytes_sent, flow.transfer_s) == counts


COUNTS = StationCounts(
    frames=200,
    frame_bytes=250_000,
    packets=150,
    retransmissions=20,
    fec_frames=18,
    residual_losses=2,
    congestion_losses=5,
    corruption_losses=30,
    unheard=6,
    eln_marks=7,
    suppressed_dupacks=8,
    unrepaired_taken=0,
    unrepaired_unheard=0,
    fec_repairs=77,
    delivered=66,
)


def test_a_link_joins_its_sender_and_its_receiver() -> None:
    # the medium took 30 of 200, and the far radio did not hear 10 of the rest
    far = replace(COUNTS, fec_repairs=4, delivered=147, unheard=10, abandoned=3)
    link = summarize_link(COUNTS, far, 4.0)
    assert (link.throughput_bps, link.per) == (500_000, 0.2)
    assert link.residual_per == pytest.approx(0.02)
    assert (link.frames, link.packets, link.retransmissions, link.fec_frames) == (200, 150, 20, 18)
    assert (link.fec_repairs, link.residual_losses, link.congestion_losses) == (4, 3, 5)
    assert (link.eln_marks, link.suppressed_dupacks) == (7, 8)


def test_residual_losses_are_those_that_the_receiving_station_has_missed() -> None:
    # what a sender gives up may have arrived; what was under way when its session ended is not numbered any more
    near = replace(
        COUNTS, residual_losses=20, session_losses=2, abandoned=1000, unrepaired_taken=3, unrepaired_unheard=100
    )
    far = replace(
        COUNTS, residual_losses=200, session_losses=400, abandoned=5, unrepaired_taken=300, unrepaired_unheard=4
    )
    assert summarize_link(near, far, 4.0).residual_losses == 2 + 5 + 3 + 4
    assert summarize_link(near, replace(far, delivered=140), 4.0, blind=True).residual_losses == 10


def test_shares_are_never_of_nothing_nor_negative() -> None:
    idle = summarize_link(StationCounts(), StationCounts(), 0.0)
    assert (idle.throughput_bps, idle.per, idle.residual_per) == (0, 0, 0)
    assert summarize_link(COUNTS, replace(COUNTS, delivered=151), 4.0).residual_per == 0


@pytest.mark.parametrize(
    ("late", "fraction", "on_time"), [(3, 0.01, True), (4, 0.01, False), (1, 0, False), (0, 0, True)]
)
def test_summary_adds_up_flows_and_stations(late: int, fraction: float, on_time: bool) -> None:
    twice = [{"kind": "bulk", "bytes": 1000}, {"kind": "bulk", "bytes": 1000}]
    plan = resolve(scenario(workloads=twice, timing={"late_fraction": fraction}))
    flows = [flow for work in plan.workloads for flow in work.ports().values()]
    ends = (sender(), receiver()), (sender(started_ns=S, finished_ns=3 * S), receiver())
    reports = [replace(report, flow=flow) for flow, each in zip(flows, ends, strict=True) for report in each]
    finals: dict[Side, StationFinal] = {
        "up": StationFinal(counts=COUNTS, lateness=Lateness(events=100, late_events=late, max_ns=7_000_000)),
        "down": StationFinal(counts=COUNTS, lateness=Lateness(events=200, late_events=0, max_ns=9_500_000)),
    }
    sent: dict[Side, list[tuple[float, float]]] = {"up": [(0.0, 0.0), (10.0, 1e6)], "down": [(0.0, 0.0)]}
    about: dict[str, Any] = {"run": "r", "folder": None, "finals": finals, "sent_bits": sent, "changes": 0}
    nothing = summarize(plan, reports=EndReports(), until_s=0.0, **about)
    assert (nothing.duration_s, nothing.goodput_bps, nothing.throughput_bps, nothing.finished) == (0, 0, 0, False)
    made = summarize(plan, reports=EndReports(reports), until_s=9.0, **about)
    assert (made.late_events, made.events, made.max_late_ms, made.on_time) == (late, 300, 9.5, on_time)

    # from the first begin to the last end
    assert (made.duration_s, made.goodput_bps) == (2.5, 6400)
    assert (made.throughput_bps, made.capacity_bps) == (1e5, 2_000_000)
    assert (made.retransmissions, made.timeouts, made.finished, made.intact) == (6, 2, True, True)


def test_smoothed_round_trips_of_paths_are_their_flows() -> None:
    plan = resolve(scenario(tier="emulated", tcp="cubic", workloads=[{"kind": "bulk", "bytes": 1000, "flow": "m"}]))
    [flow] = (flow for work in plan.workloads for flow in work.ports().values())
    finals: dict[Side, StationFinal] = {side: StationFinal(counts=COUNTS, lateness=LATENESS) for side in ("up", "down")}
    made = summarize(
        plan,
        run="r",
        folder=None,
        reports=EndReports(replace(report, flow=flow) for report in (sender(), receiver())),
        finals=finals,
        sent_bits={"up": [(0.0, 0.0)], "down": [(0.0, 0.0)]},
        until_s=9.0,
        changes=0,
        smoothed_us={f"{flow}/1": ((50_000, 3),), f"{flow}/2": ((90_000, 1),), "other/1": ((1, 9),)},
    )
    assert made.quality is not None
    assert made.quality.smoothed == Percentiles(n=4, mean_ms=60.0, p50_ms=50.0, p95_ms=90.0, p99_ms=90.0)
    assert made.quality.flows[flow].smoothed == made.quality.smoothed


def test_rise_is_taken_between_the_points() -> None:
    points = [(0.0, 0.0), (1.0, 10.0), (2.0, 30.0)]
    assert rise(points, 0, 2) == 30
    assert rise(points, 0.5, 1.5) == 15
    assert rise(points, 1, 1) == 0
    assert rise(points, -1, 5) == 30
    assert rise([(0.0, 0.0)], 0, 3) == 0


#: the columns of the link are a table that is made of the record
WRITTEN = [kind for kind in RECORD_TYPES if kind.measurement != "link"]


@pytest.mark.parametrize("kind", [Summary, FlowSummary, LinkSummary, AccessSummary, SplitCounters, *WRITTEN])
def test_the_document_has_every_field(kind: Any) -> None:
    text = (Path(__file__).parents[3] / "docs" / "runs.md").read_text()
    documented = {name for quoted in re.findall(r"`([a-z_, ]+)`", text) for name in quoted.split(", ")}
    assert {field.name for field in fields(kind)} - documented == set()


def test_access_is_in_the_result_of_a_shared_carrier_alone() -> None:
    newest = AccessRecord(
        time_ns=1, link="up", bursts=9, deferrals=4, backoff_ms=7.5, airtime_ms=1500.0, collisions_heard=1, collisions=2
    )
    shared = replace(summary(), access={"up": summarize_access(newest, 3, 6.0)})
    assert shared.plain()["access"] == {
        "up": {
            "bursts": 9,
            "deferrals": 4,
            "backoff_ms": 7.5,
            "airtime_share": 0.25,
            "collisions_heard": 1,
            "collisions": 3,
        }
    }
    assert "access" not in summary().plain()
