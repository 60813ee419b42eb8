"""Whole transfers between two connections, exact in time; the losses are given."""

from dataclasses import replace

from common.units import MS, SECOND
from hosts.tcp.config import TcpConfig
from hosts.tcp.connection import Connection
from tests.hosts.tcp.pair import FLOW, Pair, Path, lose
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
