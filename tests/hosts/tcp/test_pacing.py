"""draft-ietf-ccwg-bbr-06 sections 5.6.2 and 5.6.3: departures at the pacing rate, a quantum at a time."""

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.units import MS, SECOND
from hosts.tcp.config import TcpConfig
from hosts.tcp.pacing import MOST_LATE_NS, Pacer
from tests.hosts.tcp.pair import Pair, Path, lose

#: a segment of 1000 octets in 8 ms
RATE_BPS = 1_000_000
STEP_NS = 8 * MS
CONFIG = TcpConfig().but(mss=1000, timestamps=False, initial_window=20, nagle=False)


def paced(config: TcpConfig = CONFIG, quantum: int = 0, up: Path | None = None) -> Pair:
    """A connected pair whose client paces."""
    pair = Pair(config, up=up or Path(rate_bps=1_000_000_000))
    pair.run_until(lambda: pair.client.connected and pair.server.connected)
    growth = pair.client._sender.growth
    growth.pacing_rate_bps, growth.send_quantum = RATE_BPS, quantum
    return pair


def departures(pair: Pair) -> list[int]:
    """When the client's segments with data have left."""
    return [at for at, segment in pair.ways[0].log if segment.length]


def gaps(times: list[int]) -> list[int]:
    return [after - before for before, after in pairwise(times)]


def test_the_next_send_time_is_the_latest_plus_the_size_over_the_rate() -> None:
    # C.next_send_time = max(Now(), C.next_send_time) + packet.size / C.pacing_rate
    pacer = Pacer()
    pacer.handle_sent(1000, RATE_BPS, 0, 5)
    assert pacer.next_at == 5 + STEP_NS
    assert not pacer.may_send(pacer.next_at - 1)
    assert pacer.may_send(pacer.next_at)
    # rounded up: 1 octet at 3 bit/s takes 8/3 s
    pacer.handle_sent(1, 3, 0, SECOND)
    assert pacer.next_at == SECOND + 2_666_666_667


def test_segments_leave_a_step_apart_and_as_soon_as_they_may() -> None:
    pair = paced()
    pair.send(0, 20_000)
    pair.run_until(lambda: pair.received[1] == 20_000)
    assert gaps(departures(pair)) == [STEP_NS] * 19


def test_without_a_rate_a_window_leaves_at_once() -> None:
    pair = paced()
    pair.client._sender.growth.pacing_rate_bps = None
    pair.send(0, 20_000)
    pair.run_until(lambda: pair.received[1] == 20_000)
    assert gaps(departures(pair)) == [0] * 19


def test_a_quantum_leaves_together() -> None:
    pair = paced(quantum=4000)
    pair.send(0, 20_000)
    pair.run_until(lambda: pair.received[1] == 20_000)
    assert gaps(departures(pair)) == ([0, 0, 0, 4 * STEP_NS] * 5)[:19]


def test_the_window_still_limits() -> None:
    pair = paced(CONFIG.but(initial_window=2, delayed_ack_ns=0))
    pair.send(0, 20_000)
    pair.run_until(lambda: pair.received[1] == 20_000)
    first, second, third = departures(pair)[:3]
    # the ACK of the first segment comes after 100 ms, long after its time at the rate
    assert second - first == STEP_NS
    assert 100 * MS <= third - first <= 101 * MS


def test_what_is_sent_again_is_paced_too() -> None:
    pair = paced(CONFIG.but(recovery="rack"), up=Path(rate_bps=1_000_000_000, drop=lose(5, 6, 7, 8)))
    pair.send(0, 40_000)
    pair.run_until(lambda: pair.received[1] == 40_000)
    assert pair.client.counters.retransmits >= 4
    assert min(gaps(departures(pair))) >= STEP_NS


def test_acknowledgements_do_not_wait() -> None:
    pair = paced(CONFIG.but(delayed_ack_ns=0))
    client, server, now = pair.client, pair.server, pair.now
    client.write(2000)
    assert client.poll_segment(now) is not None
    # the second segment waits
    assert client.poll_segment(now) is None
    server.write(1000)
    data = server.poll_segment(now)
    assert data is not None
    client.handle_segment(data, now)
    answer = client.poll_segment(now)
    assert answer is not None
    assert (answer.length, answer.ack) == (0, data.seq + 1000)
    assert client.poll_segment(now) is None


def test_a_deadline_is_set_only_while_a_segment_waits() -> None:
    pair = paced()
    client = pair.client
    client.write(2000)
    now = pair.now
    assert client.poll_segment(now) is not None
    assert client.poll_segment(now) is None
    assert client.next_deadline() == now + STEP_NS
    client.handle_deadline(now + STEP_NS - 1)
    assert client.poll_segment(now + STEP_NS - 1) is None
    client.handle_deadline(now + STEP_NS)
    assert client.poll_segment(now + STEP_NS) is not None
    assert client.poll_segment(now + STEP_NS) is None
    # what is left is the retransmission timer
    at = client.next_deadline()
    assert at is not None
    assert at >= now + SECOND


@pytest.mark.parametrize(("late_ns", "lost_ns"), [(MOST_LATE_NS, 0), (MOST_LATE_NS + 1, MOST_LATE_NS + 1)])
def test_a_late_timer_does_not_lower_the_rate_up_to_a_bound(late_ns: int, lost_ns: int) -> None:
    pacer = Pacer()
    pacer.handle_sent(1000, RATE_BPS, 0, 0)
    pacer.wait()
    pacer.handle_sent(1000, RATE_BPS, 0, STEP_NS + late_ns)
    assert pacer.next_at == 2 * STEP_NS + lost_ns


def test_a_pause_of_the_application_is_not_caught_up() -> None:
    pacer = Pacer()
    pacer.handle_sent(1000, RATE_BPS, 0, 0)
    pacer.wait()
    pacer.pause()
    pacer.handle_sent(1000, RATE_BPS, 0, STEP_NS + 1)
    assert pacer.next_at == 2 * STEP_NS + 1


@given(
    st.lists(st.tuples(st.integers(1, 1500), st.integers(0, 30 * MS)), min_size=1, max_size=60),
    st.integers(10_000, 10_000_000),
    st.sampled_from([0, 3000]),
)
def test_no_interval_has_more_than_its_rate_and_a_quantum(
    segments: list[tuple[int, int]], rate_bps: int, quantum: int
) -> None:
    pacer, now = Pacer(), 0
    sent: list[tuple[int, int]] = []
    for octets, wait_ns in segments:
        now += wait_ns
        while not pacer.may_send(now):
            now = pacer.next_at
        pacer.handle_sent(octets, rate_bps, quantum, now)
        sent.append((now, octets))
    most = max(octets for _, octets in sent)
    for first, (start, _) in enumerate(sent):
        carried = 0
        for end, octets in sent[first:]:
            carried += octets
            # a quantum ends with the segment that fills it
            assert carried <= Fraction(rate_bps * (end - start), 8 * SECOND) + 2 * (quantum + most)
