"""Bulk transfers: their limits, and what becomes of them when connections break or the peer is not there."""

from dataclasses import replace
from typing import Any

import pytest

from common.units import MS, SECOND
from hosts.engine.results import TcpReceived, TcpSent
from hosts.workloads.bulk import RST_GRACE_S, Bulk
from tcpip.segment import SYN
from tests.hosts.two_hosts import DELAY_NS, RATE_BPS, SYN_BYTES, TwoHosts

AGAIN_NS = 300 * MS
NEVER = 1 << 60


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({}, "a bulk needs bytes or duration_s"),
        ({"bytes": 1, "port": 65_535, "flows": 2}, "2 flows from port 65535 on end above 65535"),
        ({"bytes": 1, "direction": "h1"}, "direction 'h1' must be up or down"),
        ({"bytes": 1, "congestion_control": "Reno!"}, r"'Reno!' does not match \[a-z0-9_\]\{1,15\}"),
    ],
)
def test_what_no_bulk_can_be_is_one_line(options: dict[str, Any], line: str) -> None:
    with pytest.raises(ValueError, match=f"^{line}$"):
        Bulk(**options)


def test_the_last_port_is_taken() -> None:
    assert Bulk(bytes=1, port=65_534, flows=2).ports() == {65_534: "bulk-1", 65_535: "bulk-2"}


def test_a_timed_bulk_that_breaks_begins_again_and_ends_in_time() -> None:
    hosts = TwoHosts(Bulk(duration_s=2, drain_s=0.5), again_ns=AGAIN_NS).go()
    hosts.run(SECOND)
    hosts.reset()
    hosts.run(10 * SECOND)
    assert hosts.broken == [(SECOND, "bulk", "reset by the peer")]
    syns = [time for time, segment in hosts.segments["h1"] if segment.flags & SYN]
    assert syns == [0, SECOND + AGAIN_NS]
    [sent], [received] = hosts.sent, hosts.received
    assert isinstance(sent, TcpSent)
    assert isinstance(received, TcpReceived)
    assert (sent.error, received.error, received.intact) == (None, None, True)
    assert sent.started_ns == syns[1]
    # the octets of both connections count
    assert received.bytes_at_duration is not None
    assert received.bytes_at_duration > received.bytes > 0
    assert 0.8 < received.bytes_at_duration * 8e9 / RATE_BPS / (2 * SECOND - AGAIN_NS) < 1
    assert all(agent.done for agent in hosts.agents.values())


@pytest.mark.parametrize(
    ("work", "again_ns"),
    [(Bulk(duration_s=2), None), (Bulk(bytes=3_000_000), AGAIN_NS), (Bulk(duration_s=2, bytes=3_000_000), AGAIN_NS)],
    ids=["no beginning again", "size", "size and duration"],
)
def test_a_bulk_that_breaks_for_good_reports_why(work: Bulk, again_ns: int | None) -> None:
    """Half of a transfer of a size cannot be sent again: it would not be that transfer."""
    hosts = TwoHosts(work, again_ns=again_ns).go()
    hosts.run(SECOND)
    hosts.reset()
    hosts.run(10 * SECOND)
    assert not hosts.broken
    [sent], [received] = hosts.sent, hosts.received
    assert (sent.error, received.error) == ("reset by the peer", "reset by the peer")
    assert sent.finished_ns == received.finished_ns == SECOND
    assert received.intact
    outcome = work.outcome([sent], [received], 10)
    # the run lasted as long as a duration asks for
    assert outcome.finished == (work.duration_s is not None)
    assert 0 < outcome.nbytes <= sent.bytes


def test_a_bulk_of_a_size_waits_for_its_peer() -> None:
    """The host answers before anybody listens there, with RSTs."""
    hosts = TwoHosts(Bulk(bytes=20_000), again_ns=AGAIN_NS)
    hosts.listen("h2")
    hosts.make("h1").go(0)
    hosts.run(SECOND)
    refused = [time for time, *what in hosts.broken if what == ["bulk", "refused"]]
    # a SYN and its answer
    there_and_back = 2 * DELAY_NS + (SYN_BYTES + 40) * 1000
    assert refused == [place * AGAIN_NS + (place + 1) * there_and_back for place in range(4)]
    hosts.make("h2").go(0)
    hosts.run(3 * SECOND)
    [sent], [received] = hosts.sent, hosts.received
    assert (sent.complete, received.complete, received.intact) == (True, True, True)
    assert sent.bytes == received.bytes == 20_000
    assert sent.sha256 == received.sha256
    assert [report.index for report in hosts.reports if report.host == "h1"] == [4]


def test_a_bulk_stops_to_wait_for_its_peer() -> None:
    hosts = TwoHosts(Bulk(bytes=20_000), again_ns=AGAIN_NS, cut=(0, NEVER))
    hosts.listen("h2")
    hosts.make("h1").go(0)
    hosts.run(SECOND)
    hosts.agents["h1"].stop()
    assert [sent.error for sent in hosts.sent] == ["stopped"]
    hosts.run(100 * SECOND)
    assert len(hosts.reports) == 1
    assert not hosts.broken


def test_a_connection_that_comes_before_the_receivers_start_waits_for_it() -> None:
    hosts = TwoHosts(Bulk(bytes=20_000))
    late = hosts.make("h2")
    hosts.make("h1").go(0)
    hosts.run(SECOND)
    # as much as the buffers take has crossed
    assert sum(segment.length for _, segment in hosts.segments["h1"]) == 20_000
    assert not hosts.reports
    late.go(0)
    hosts.run(2 * SECOND)
    [sent], [received] = hosts.sent, hosts.received
    assert (sent.complete, received.complete, received.intact, received.bytes) == (True, True, True, 20_000)
    assert received.finished_ns == SECOND


@pytest.mark.parametrize(
    ("cut_at", "theirs", "ours"),
    [
        (0, "not connected within the duration", "never connected"),
        (SECOND // 2, "not drained in time", "the sender's end was not heard"),
    ],
    ids=["from the start", "in the middle"],
)
def test_both_ends_give_up_in_time_when_nothing_crosses(cut_at: int, theirs: str, ours: str) -> None:
    work = Bulk(duration_s=1, drain_s=0.5)
    hosts = TwoHosts(work, cut=(cut_at, NEVER)).go()
    hosts.run(100 * SECOND)
    [sent], [received] = hosts.sent, hosts.received
    assert (sent.error, received.error, received.intact) == (theirs, ours, True)
    assert sent.finished_ns == (SECOND if not cut_at else 1.5 * SECOND)
    assert received.finished_ns == (None if not cut_at else (1.5 + RST_GRACE_S) * SECOND)
    assert (received.bytes_at_duration == received.bytes > 0) == (cut_at > 0)
    outcome = work.outcome([sent], [received], 100)
    assert (outcome.nbytes, outcome.span, outcome.finished) == (received.bytes, (0, 1), True)


@pytest.mark.parametrize(
    ("cut_at", "theirs", "ours"),
    [
        (SECOND // 2, "not connected within the duration", "never connected"),
        (SECOND, "not drained in time", "the sender's end was not heard"),
    ],
    ids=["the link is dead when it would begin again", "the link dies after it has begun again"],
)
def test_a_bulk_that_has_begun_again_is_given_up_in_time(cut_at: int, theirs: str, ours: str) -> None:
    hosts = TwoHosts(Bulk(duration_s=2, drain_s=0.5), again_ns=AGAIN_NS, cut=(cut_at, NEVER)).go()
    hosts.run(SECOND // 2)
    hosts.reset()
    hosts.run(100 * SECOND)
    [sent], [received] = hosts.sent, hosts.received
    assert (sent.error, received.error) == (theirs, ours)
    assert [report.index for report in hosts.reports] == [1, 1]
    # those of the first connection count as well
    assert received.bytes_at_duration is not None
    assert received.bytes_at_duration > received.bytes
    assert all(agent.done for agent in hosts.agents.values())


def test_a_paused_bulk_writes_nothing_and_ends_in_time() -> None:
    hosts = TwoHosts(Bulk(duration_s=2)).go()
    hosts.run(SECOND)
    hosts.agents["h1"].pause(True)
    hosts.run(int(1.5 * SECOND))
    # the send buffer is empty by then
    before = len(hosts.segments["h1"])
    hosts.run(2 * SECOND - 1)
    assert len(hosts.segments["h1"]) == before
    hosts.run(3 * SECOND)
    [sent], [received] = hosts.sent, hosts.received
    assert (sent.complete, sent.bytes) == (True, received.bytes)
    assert 2 * SECOND < sent.finished_ns < 2 * SECOND + 5 * DELAY_NS
    assert received.bytes_at_duration == received.bytes


def test_a_bulk_begun_in_a_pause_writes_after_it() -> None:
    hosts = TwoHosts(Bulk(bytes=5000))
    for host in ("h1", "h2"):
        hosts.make(host).pause(True)
    for agent in hosts.agents.values():
        agent.go(0)
    hosts.run(SECOND)
    assert [segment.length for _, segment in hosts.segments["h1"]] == [0, 0]
    hosts.agents["h1"].pause(False)
    hosts.run(2 * SECOND)
    [sent] = hosts.sent
    assert (sent.complete, sent.bytes) == (True, 5000)
    assert sent.finished_ns > SECOND
    # a pause after the end changes nothing
    hosts.agents["h1"].pause(True)
    assert hosts.sent == [replace(sent)]
