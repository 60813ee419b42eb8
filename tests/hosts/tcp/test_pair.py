"""Whole transfers between two connections, exact in time; the losses are given."""

from dataclasses import replace

import pytest

from hosts.tcp.config import MS, SECOND, TcpConfig
from hosts.tcp.connection import Connection
from hosts.tcp.shared import Shared
from tcpip.segment import CE, SYN, Segment
from tests.hosts.tcp.pair import FLOW, Drop, Pair, Path, lose
from tests.hosts.tcp.script import PLAIN

#: a window too small to fill the path, so that times can be counted by hand
SMALL = replace(PLAIN, initial_window=4, receive_buffer=4000, delayed_ack_ns=0, restart_after_idle=False)
#: 1040, 40 and 44 octets at 10 Mbit/s
SEGMENT_NS, ACK_NS, SYN_NS = 832_000, 32_000, 35_200


def test_a_clean_transfer_takes_the_time_it_must() -> None:
    pair = Pair(SMALL)
    pair.send(0, 8000)
    pair.run_until(lambda: pair.received[1] == 8000)
    # SYN and SYN-ACK; the first segment's ACK is back after a round trip more; then the eighth follows the fifth
    round_trip = SEGMENT_NS + ACK_NS + 100 * MS
    assert pair.now == 2 * SYN_NS + 100 * MS + round_trip + 4 * SEGMENT_NS + 50 * MS


def test_size_alone_makes_the_same_segments() -> None:
    def run(octets: bool) -> list[tuple[int, str]]:
        up = Path(rate_bps=1_000_000, buffer_bytes=20_000, drop=lose(7, 8, 30))
        pair = Pair(replace(PLAIN, recovery="sack", limited_transmit=True), up=up, octets=octets)
        pair.send(0, bytes(100_000) if octets else 100_000)
        pair.run()
        return [(at, repr(segment)) for at, segment in up.log]

    assert run(octets=True) == run(octets=False)


def test_both_directions_at_once() -> None:
    pair = Pair(replace(PLAIN, recovery="sack", limited_transmit=True), octets=True)
    there, back = bytes(range(250)) * 400, bytes(reversed(range(250))) * 300
    pair.send(0, there)
    pair.send(1, back)
    pair.run()
    assert pair.octets == [back, there]


def test_simultaneous_open() -> None:
    ways = Path(), Path()
    ends = Connection(PLAIN, FLOW, 1000), Connection(PLAIN, FLOW.reversed(), 5000)
    for end in ends:
        end.connect(0)
    now = 0
    while not (ends[0].connected and ends[1].connected):
        for end, way in zip(ends, ways, strict=True):
            while (segment := end.poll_segment(now)) is not None:
                way.send(segment, now)
        now = min(at for what in (*ends, *ways) if (at := what.next_deadline()) is not None)
        assert now < SECOND
        for end, way in zip(reversed(ends), ways, strict=True):
            while (arrived := way.receive(now)) is not None:
                end.handle_segment(arrived, now)
    assert [len(way.log) for way in ways] == [2, 2]


def test_lost_handshakes() -> None:
    # the SYN, the SYN-ACK and the acknowledgement of that, once each
    seen = [0, 0]

    def first_two(end: int) -> Drop:
        def drop(segment: Segment) -> bool:
            seen[end] += 1
            return seen[end] == 1

        return drop

    pair = Pair(PLAIN, up=Path(drop=first_two(0)), down=Path(drop=first_two(1)))
    pair.send(0, 5000)
    pair.run()
    assert pair.received[1] == 5000


def test_lost_fins() -> None:
    lost: list[Segment] = []

    def fins(segment: Segment) -> bool:
        if segment.flags & 1 and len(lost) < 2:
            lost.append(segment)
            return True
        return False

    pair = Pair(PLAIN, up=Path(drop=fins), down=Path(drop=fins))
    pair.send(0, 500)
    pair.run()
    assert len(lost) == 2
    assert pair.received[1] == 500
    pair.run_until(lambda: pair.client.closed)
    assert pair.client.error is None


def test_reno_newreno_and_sack_lose_ever_less_to_a_burst() -> None:
    def seconds(config: TcpConfig) -> float:
        up = Path(rate_bps=4_000_000, drop=lose(*range(60, 70, 3)))
        pair = Pair(config, up=up)
        pair.send(0, 400_000)
        pair.run_until(lambda: pair.received[1] == 400_000)
        return pair.now / SECOND

    base = replace(PLAIN, receive_buffer=65_535, delayed_ack_ns=0)
    reno, newreno, sack = (seconds(replace(base, recovery=name)) for name in ("reno", "newreno", "sack"))
    assert reno > newreno > sack


def test_a_spurious_timeout_costs_next_to_nothing_with_frto() -> None:
    # the path holds everything for three seconds, once
    def resent(frto: bool) -> int:
        held: list[Segment] = []

        class Held(Path):
            def send(self, segment: Segment, now: int) -> None:
                if 500 * MS <= now < 3500 * MS:
                    held.append(segment)
                    return
                while held:
                    super().send(held.pop(0), now)
                super().send(segment, now)

        config = replace(PLAIN, recovery="sack", frto=frto, receive_buffer=20_000)
        pair = Pair(config, up=Held(rate_bps=1_000_000))
        pair.send(0, 300_000)
        pair.run()
        assert pair.client.counters.timeouts > 0
        assert pair.client.counters.spurious_timeouts == frto
        return pair.client.counters.retransmits

    assert resent(frto=True) <= 3 < resent(frto=False)


def test_marks_instead_of_losses() -> None:
    # a queue that marks every segment between the 50th and the 60th: one reduction, nothing sent again
    count = 0

    def mark(segment: Segment) -> bool:
        nonlocal count
        count += segment.length > 0
        if 50 <= count < 60 and segment.ecn:
            segment.ecn = CE
        return False

    pair = Pair(replace(PLAIN, ecn=True), up=Path(rate_bps=4_000_000, drop=mark))
    pair.send(0, 400_000)
    pair.run()
    assert pair.client.ecn_agreed
    assert pair.client.counters.ecn_reductions == 1
    assert pair.client.counters.retransmits == 0


def test_the_next_connection_starts_where_this_one_ended() -> None:
    # CBI: no slow-start overshoot of the same buffer again
    shared = Shared()
    config = replace(PLAIN, recovery="sack", cbi=True)

    def losses() -> int:
        up = Path(rate_bps=1_000_000, buffer_bytes=20_000)
        pair = Pair(config, up=up, shared=(shared, None))
        pair.send(0, 150_000)
        pair.run()
        return up.hop.refused

    assert losses() > 0
    assert losses() == 0


@pytest.mark.parametrize("iss", [(2**32 - 1, 2**32 - 1), (2**32 - 50_000, 2**32 - 1), (0, 2**31 - 1)])
def test_numbers_wrap(iss: tuple[int, int]) -> None:
    pair = Pair(PLAIN, up=Path(rate_bps=2_000_000, drop=lose(20, 21, 50, 90)), iss=iss, octets=True)
    data = bytes(range(256)) * 600
    pair.send(0, data)
    pair.run()
    assert pair.octets[1] == data


def test_a_peer_that_is_gone() -> None:
    config = replace(PLAIN, data_retries=3)
    pair = Pair(config, up=Path(drop=lambda segment: not segment.flags & SYN))
    pair.send(0, 5000)
    pair.run_until(lambda: pair.client.closed)
    assert pair.client.error is not None
    assert pair.client.counters.timeouts == 4


def test_a_reader_that_stops_and_goes_on() -> None:
    pair = Pair(replace(PLAIN, receive_buffer=8000))
    pair.reading[1] = False
    pair.send(0, 50_000)
    pair.run_until(lambda: pair.client.counters.zero_window_probes == 3)
    assert pair.server.readable == 8000
    pair.reading[1] = True
    began_at = pair.now
    pair.run()
    assert pair.received[1] == 50_000
    # reading opens the window: the next probe, eight seconds away, is not waited for
    assert pair.now - began_at < 2 * SECOND
    assert pair.client.counters.timeouts == 0
