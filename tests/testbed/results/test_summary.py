"""Results from hand-made reports."""

import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from hosts.engine.results import EndReport, TcpReceived, TcpSent, UdpReceived, UdpSent
from hosts.engine.split_pairs import SplitCounters
from hosts.workloads.bulk import Bulk
from hosts.workloads.onoff_udp import OnOffUdp
from hosts.workloads.short import Short
from linklayer.station_counts import StationCounts
from telemetry.records import RECORD_TYPES
from testbed.results.summary import FlowSummary, LinkSummary, Summary, rise, summarize_flow, summarize_link

S = 1_000_000_000


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


# -- by size -------------------------------------------------------------------------------------------------


def test_transfer_by_size_lasts_from_first_syn_to_end() -> None:
    flow = summarize_flow(Bulk(bytes=1000, start_s=0.5), "f", [receiver(), sender()], 9.0)
    assert (flow.bytes, flow.duration_s, flow.start_s, flow.end_s) == (1000, 2.0, 0.5, 2.5)
    assert flow.goodput_bps == 4000
    assert (flow.finished, flow.intact) == (True, True)
    assert (flow.retransmits, flow.timeouts, flow.bytes_sent) == (3, 1, 1300)
    assert flow.transfer_s == ()


@pytest.mark.parametrize(
    ("changed", "intact"),
    [({}, True), ({"intact": False}, False), ({"sha256": "bb"}, False), ({"intact": False, "sha256": "bb"}, False)],
)
def test_flow_is_intact_when_hashes_of_both_ends_agree(changed: dict[str, Any], intact: bool) -> None:
    assert summarize_flow(Bulk(bytes=1000), "f", [sender(), receiver(**changed)], 9.0).intact is intact


def test_a_transfer_without_its_receiver_is_not_intact() -> None:
    flow = summarize_flow(Bulk(bytes=1000), "f", [sender()], 9.0)
    assert (flow.bytes, flow.finished, flow.intact) == (0, True, False)


def test_cut_transfer_counts_arrived_bytes() -> None:
    reports = [
        sender(error="stopped", sha256="cc"),
        receiver(bytes=400, error="reset", sha256="dd"),
    ]
    flow = summarize_flow(Bulk(bytes=1000, start_s=1), "f", reports, 5.0)
    assert (flow.finished, flow.intact, flow.bytes) == (False, True, 400)
    assert (flow.start_s, flow.end_s, flow.duration_s, flow.goodput_bps) == (1, 5, 4, 800)


def test_transfer_that_has_not_begun_is_empty() -> None:
    flow = summarize_flow(Bulk(bytes=1000, start_s=7), "f", [], 5.0)
    assert (flow.finished, flow.bytes, flow.duration_s, flow.goodput_bps) == (False, 0, 0, 0)


# -- by duration ---------------------------------------------------------------------------------------------


def test_timed_flow_counts_bytes_read_at_its_end() -> None:
    reports = [sender(finished_ns=6 * S), receiver(bytes=1000, bytes_at_duration=900)]
    flow = summarize_flow(Bulk(duration_s=4.0), "f", reports, 6.1)
    assert (flow.bytes, flow.duration_s, flow.goodput_bps) == (900, 4.0, 1800)
    assert (flow.finished, flow.intact) == (True, True)


def test_its_duration_starts_when_the_flow_does() -> None:
    reports = [sender(), receiver(bytes_at_duration=900)]
    flow = summarize_flow(Bulk(duration_s=4.0, start_s=3.0), "f", reports, 8.0)
    assert (flow.start_s, flow.end_s, flow.duration_s, flow.finished) == (3, 7, 4, True)
    cut = summarize_flow(Bulk(duration_s=4.0, start_s=3.0), "f", reports, 5.0)
    assert (cut.start_s, cut.end_s, cut.duration_s, cut.finished) == (3, 5, 2, False)


def test_undrained_flow_may_be_short_but_is_intact() -> None:
    reports = [
        sender(error="not drained in time"),
        receiver(error="reset", sha256="bb", bytes=800, bytes_at_duration=700),
    ]
    flow = summarize_flow(Bulk(duration_s=4.0), "f", reports, 9.0)
    assert (flow.finished, flow.intact, flow.bytes) == (True, True, 700)
    spoilt = [reports[0], receiver(intact=False)]
    assert summarize_flow(Bulk(duration_s=4.0), "f", spoilt, 9.0).intact is False


def test_flow_without_connection_has_no_bytes_and_is_intact() -> None:
    reports = [sender(bytes=0, error="not connected within the duration")]
    flow = summarize_flow(Bulk(duration_s=4.0), "f", reports, 4.0)
    assert (flow.bytes, flow.goodput_bps, flow.finished, flow.intact) == (0, 0, True, True)


def test_size_and_duration_end_with_the_first() -> None:
    work = Bulk(bytes=1000, duration_s=10.0)
    early = summarize_flow(work, "f", [sender(), receiver(bytes_at_duration=1000)], 3.0)
    assert (early.duration_s, early.bytes, early.finished) == (2.0, 1000, True)
    late = [sender(finished_ns=12 * S), receiver(bytes_at_duration=950)]
    assert summarize_flow(work, "f", late, 12.0).bytes == 950


# -- short, UDP ----------------------------------------------------------------------------------------------


def series() -> list[EndReport]:
    reports = []
    for index in (2, 0, 1):
        start = index * 3 * S
        reports += [
            sender(index, started_ns=start, finished_ns=start + (index + 1) * S // 2, sha256=str(index)),
            receiver(index, sha256=str(index)),
        ]
    return reports


def test_short_transfers_are_timed_without_gaps() -> None:
    flow = summarize_flow(Short(bytes=1000, count=3), "f", series(), 20.0)
    assert flow.transfer_s == (0.5, 1.0, 1.5)
    assert (flow.duration_s, flow.start_s, flow.end_s) == (3.0, 0, 7.5)
    assert (flow.bytes, flow.goodput_bps, flow.retransmits, flow.timeouts) == (3000, 8000, 9, 3)
    assert (flow.finished, flow.intact) == (True, True)


def test_a_series_cut_short_keeps_the_times_it_has() -> None:
    reports = [report for report in series() if report.index < 2]
    flow = summarize_flow(Short(bytes=1000, count=3), "f", reports, 8.0)
    assert (flow.finished, flow.transfer_s, flow.duration_s, flow.bytes) == (False, (0.5, 1.0), 8.0, 2000)


def test_udp_is_neither_intact_nor_not() -> None:
    work = OnOffUdp(duration_s=4.0, start_s=1.0)
    sent = UdpSent(bytes=2500, packets=5, unsent=0, started_ns=S, finished_ns=5 * S, error=None)
    reports = [EndReport(host="h1", flow="f", kind="", index=0, result=sent), datagrams(2000)]
    flow = summarize_flow(work, "f", reports, 6.0)
    assert (flow.bytes, flow.duration_s, flow.goodput_bps, flow.end_s) == (2000, 4.0, 4000, 5.0)
    assert (flow.finished, flow.intact, flow.retransmits) == (True, None, 0)
    cut = summarize_flow(work, "f", [datagrams(500)], 3.0)
    assert (cut.finished, cut.duration_s) == (False, 2.0)


# -- links ---------------------------------------------------------------------------------------------------

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
    far = replace(COUNTS, fec_repairs=4, delivered=147, unheard=10)
    link = summarize_link(COUNTS, far, 4.0)
    assert (link.throughput_bps, link.per) == (500_000, 0.2)
    assert link.residual_per == pytest.approx(0.02)
    assert (link.frames, link.packets, link.retransmissions, link.fec_frames) == (200, 150, 20, 18)
    assert (link.fec_repairs, link.residual_losses, link.congestion_losses) == (4, 2, 5)
    assert (link.eln_marks, link.suppressed_dupacks) == (7, 8)


def test_losses_of_scheme_without_repair_are_residual() -> None:
    near = replace(COUNTS, residual_losses=2, unrepaired_taken=3, unrepaired_unheard=100)
    far = replace(COUNTS, residual_losses=200, unrepaired_taken=300, unrepaired_unheard=4)
    assert summarize_link(near, far, 4.0).residual_losses == 9


def test_an_idle_link_divides_by_nothing() -> None:
    idle = StationCounts()
    link = summarize_link(idle, idle, 0.0)
    assert (link.throughput_bps, link.per, link.residual_per) == (0, 0, 0)


def test_more_delivered_than_sent_is_no_negative_loss() -> None:
    assert summarize_link(COUNTS, replace(COUNTS, delivered=151), 4.0).residual_per == 0


def test_rise_is_taken_between_the_points() -> None:
    points = [(0.0, 0.0), (1.0, 10.0), (2.0, 30.0)]
    assert rise(points, 0, 2) == 30
    assert rise(points, 0.5, 1.5) == 15
    assert rise(points, 1, 1) == 0
    assert rise(points, -1, 5) == 30
    assert rise([(0.0, 0.0)], 0, 3) == 0


#: the columns of the link are a table that is made of the record
WRITTEN = [kind for kind in RECORD_TYPES if kind.measurement != "link"]


@pytest.mark.parametrize("kind", [Summary, FlowSummary, LinkSummary, SplitCounters, *WRITTEN])
def test_the_document_has_every_field(kind: Any) -> None:
    text = (Path(__file__).parents[3] / "docs" / "runs.md").read_text()
    documented = {name for quoted in re.findall(r"`([a-z_, ]+)`", text) for name in quoted.split(", ")}
    assert {field.name for field in fields(kind)} - documented == set()
