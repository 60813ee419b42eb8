"""The agents of two hosts: records, reports and early ends; tests/conformance has the rules of every workload."""

from itertools import pairwise
from typing import Any

import pytest

from common.units import MS, SECOND
from hosts.engine.packets import UDP_HEADERS
from hosts.engine.results import UdpReceived, UdpSent
from hosts.workloads.bulk import Bulk
from hosts.workloads.onoff_udp import OnOffUdp
from hosts.workloads.probe import Probe
from hosts.workloads.short import Short
from telemetry.records import FlowRecord, TcpRecord
from tests.hosts.two_hosts import DELAY_NS, TCP, TwoHosts


def sampled(hosts: TwoHosts, interval_ns: int, count: int) -> None:
    """Run that many intervals, with samples of both hosts between them."""
    for _ in range(count):
        hosts.run(hosts.clock.now + interval_ns)
        for agent in hosts.agents.values():
            agent.sample()


def test_counters_of_a_flow_never_decrease_over_its_connections() -> None:
    hosts = TwoHosts(Short(bytes=20_000, count=3, gap_ms=100)).go()
    sampled(hosts, 10 * MS, 100)
    tcp = [record for record in hosts.records if isinstance(record, TcpRecord)]
    flows = [record for record in hosts.records if isinstance(record, FlowRecord)]
    assert {(record.host, record.flow) for record in tcp} == {("h1", "short")}
    assert {(record.host, record.flow) for record in flows} == {("h2", "short")}
    assert all(one.time_ns < two.time_ns and one.bytes_acked <= two.bytes_acked for one, two in pairwise(tcp))
    assert all(one.time_ns < two.time_ns and one.bytes_received <= two.bytes_received for one, two in pairwise(flows))
    assert tcp[-1].bytes_acked == flows[-1].bytes_received == 60_000
    # one last record of each connection, at its end
    assert {sent.finished_ns for sent in hosts.sent} <= {record.time_ns for record in tcp}


def test_an_end_at_the_time_of_a_sample_adds_no_second_record() -> None:
    hosts = TwoHosts(Bulk(duration_s=10)).go()
    sampled(hosts, SECOND, 2)
    for agent in hosts.agents.values():
        agent.stop()
        agent.sample()
    assert [report.result.error for report in hosts.reports] == ["stopped", "stopped"]
    for kind in (TcpRecord, FlowRecord):
        assert [record.time_ns for record in hosts.records if isinstance(record, kind)] == [SECOND, 2 * SECOND]


def test_a_pause_in_the_handshake_holds_the_data_back() -> None:
    hosts = TwoHosts(Bulk(bytes=5000)).go()
    agent = hosts.agents["h1"]
    hosts.run(DELAY_NS)
    agent.pause(True)
    hosts.run(SECOND)
    assert [segment.length for _, segment in hosts.segments["h1"]] == [0, 0]
    assert [end.connected for end in agent.sending()] == [True]
    agent.pause(False)
    hosts.run(2 * SECOND)
    assert [report.result.bytes for report in hosts.reports] == [5000, 5000]
    assert not agent.sending()


@pytest.mark.parametrize(
    ("options", "at"),
    [({"bytes": 5000}, DELAY_NS), ({"duration_s": 1}, SECOND + 5 * MS), ({"duration_s": 1}, 2 * SECOND)],
    ids=["handshake", "drain", "end"],
)
def test_a_pause_of_no_length_changes_nothing_where_nothing_is_written(options: dict[str, Any], at: int) -> None:
    whole, paused = TwoHosts(Bulk(**options)).go(), TwoHosts(Bulk(**options)).go()
    whole.run(3 * SECOND)
    paused.run(at)
    for flag in (True, False):
        paused.agents["h1"].pause(flag)
    paused.run(3 * SECOND)
    assert paused.reports == whole.reports
    assert [(time, segment.length) for time, segment in paused.segments["h1"]] == [
        (time, segment.length) for time, segment in whole.segments["h1"]
    ]


def test_a_size_that_is_written_in_time_is_drained_after_the_duration() -> None:
    # 20 kB leave the application at once, and the wire takes 21 ms for them
    hosts = TwoHosts(Bulk(bytes=20_000, duration_s=0.045)).go()
    hosts.run(45 * MS)
    assert not hosts.reports
    hosts.run(SECOND)
    [sent], [received] = hosts.sent, hosts.received
    assert (sent.complete, sent.bytes, received.bytes, received.intact) == (True, 20_000, 20_000, True)
    assert sent.finished_ns > 45 * MS
    assert received.bytes_at_duration is not None
    assert received.bytes_at_duration < 20_000


def test_octets_that_wait_for_the_receivers_start_are_acknowledged_by_the_timer() -> None:
    """RFC 9293 section 3.8.6.3: an acknowledgement is delayed by less than half a second, also with no reader yet."""
    delay_ns = 200 * MS
    hosts = TwoHosts(Bulk(duration_s=5), tcp=TCP.but(delayed_ack_ns=delay_ns, send_buffer=5000))
    late = hosts.make("h2")
    hosts.make("h1").go(0)
    hosts.run(25 * MS)
    # what is in the send buffer goes: five segments, and 60 octets once these are acknowledged (RFC 896)
    hosts.agents["h1"].pause(True)
    hosts.run(SECOND)
    sent_at, last = [each for each in hosts.segments["h1"] if each[1].length][-1]
    acked_at, ack = hosts.segments["h2"][-1]
    assert (last.length, (last.seq + last.length) % 2**32) == (60, ack.ack)
    assert acked_at == sent_at + last.nbytes * 1000 + DELAY_NS + delay_ns
    late.go(0)
    hosts.run(10 * SECOND)
    assert [(report.result.bytes, report.result.error) for report in hosts.reports] == [(5000, None)] * 2


def test_a_stop_ends_udp_and_what_comes_later_is_neither_sent_nor_counted() -> None:
    hosts = TwoHosts(OnOffUdp(off_ms=0, packet_bytes=500, rate_bps=400_000, duration_s=10)).go()
    hosts.run(SECOND)
    for agent in hosts.agents.values():
        agent.stop()
    [sent], [received] = hosts.sent, hosts.received
    assert isinstance(sent, UdpSent)
    assert isinstance(received, UdpReceived)
    assert (sent.error, received.error) == ("stopped", "stopped")
    assert (sent.packets, sent.finished_ns) == (101, SECOND)
    # the last one but one takes 10.5 ms and leaves every 10 ms
    assert received.packets == 99
    assert received.bytes == 99 * (500 - UDP_HEADERS)
    hosts.run(20 * SECOND)
    assert len(hosts.reports) == 2


def test_udp_of_no_time_sends_nothing_and_reports() -> None:
    hosts = TwoHosts(OnOffUdp(duration_s=1e-10, off_ms=0)).go()
    hosts.run(5 * SECOND)
    [sent], [received] = hosts.sent, hosts.received
    assert isinstance(received, UdpReceived)
    assert (sent.bytes, sent.complete, received.packets, received.delay_ms_mean) == (0, True, 0, None)
    for agent in hosts.agents.values():
        agent.pause(True)
        agent.stop()
    assert len(hosts.reports) == 2


@pytest.mark.parametrize("stops", [False, True])
def test_answers_to_probes_count_until_the_drain_is_over_or_the_run_stops(stops: bool) -> None:
    hosts = TwoHosts(Probe(off_ms=10, duration_s=1, drain_s=1)).go()
    hosts.run(SECOND + 500 * MS)
    assert not hosts.sent
    if stops:
        hosts.agents["h1"].stop()
        assert len(hosts.sent) == 1
    hosts.run(10 * SECOND)
    [sent] = hosts.sent
    assert isinstance(sent, UdpSent)
    # a wire takes an octet a µs, and both ways are clean
    there_and_back = 2 * (DELAY_NS + 64 * 1000) // 1000
    assert sent.packets > 50
    assert sum(count for _, count in sent.round_trips) == sent.packets
    assert min(us for us, _ in sent.round_trips) == there_and_back


def test_a_stop_while_probes_are_sent_reports_the_answers_so_far() -> None:
    hosts = TwoHosts(Probe(off_ms=10, duration_s=10, drain_s=1)).go()
    hosts.run(SECOND)
    hosts.agents["h1"].stop()
    [sent] = hosts.sent
    assert isinstance(sent, UdpSent)
    assert sent.error == "stopped"
    assert 0 <= sent.packets - sum(count for _, count in sent.round_trips) < 10
    hosts.run(10 * SECOND)
    assert len(hosts.sent) == 1


def test_datagrams_for_a_port_without_a_receiver_are_ignored() -> None:
    hosts = TwoHosts(OnOffUdp(off_ms=0, duration_s=1))
    hosts.listen("h2")
    hosts.make("h1").go(0)
    hosts.run(5 * SECOND)
    [sent] = hosts.sent
    assert sent.complete
    # no RST: it is not TCP's
    assert not hosts.segments["h2"]
