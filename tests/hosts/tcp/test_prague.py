"""Prague (draft-briscoe-iccrg-prague-congestion-control-04): its average, its window and its rate, computed."""

from itertools import pairwise

import pytest

from common.units import MS, SECOND
from hosts.tcp.accecn import Feedback, ace_flags
from hosts.tcp.config import TcpConfig
from hosts.tcp.growth.prague import Prague
from hosts.tcp.recovery import RECOVERIES
from tcpip.segment import AE, CE, CWR, ECE, ECT0, ECT1, SYN, Segment
from tests.hosts.tcp.growing import SMSS, grown, sender_of
from tests.hosts.tcp.pair import Pair, Path, lose


class Flow:
    """Prague alone: windows are sent and acknowledged round trip by round trip."""

    def __init__(self, segments: int = 100, rtt_ns: int = 50 * MS, slow_start: bool = False, **options: float) -> None:
        sender = sender_of(segments, srtt_ns=rtt_ns)
        sender.accecn, sender.sack = Feedback(), True
        growth = grown("prague", sender, **options)
        assert isinstance(growth, Prague)
        sender.growth, self.growth, self.sender, self.rtt_ns = growth, growth, sender, rtt_ns
        sender.recovery = RECOVERIES["rack"].make(sender, None)
        self.now = 0
        if not slow_start:
            growth.ssthresh = growth.cwnd

    def round(self, share: float = 0.0) -> None:
        """A round trip: each segment is acknowledged, and the first `share` of them had CE."""
        growth, sender = self.growth, self.sender
        count = growth.cwnd // SMSS
        # what is acknowledged in this round trip was sent in the one before
        end = sender.max = sender.una + count * SMSS
        for number in range(count):
            sender.una += SMSS
            sender.max = end + (number + 1) * SMSS
            growth.handle_ack(SMSS, self.now + self.rtt_ns * number // count)
            growth.handle_marks(SMSS, SMSS if number < share * count else 0, self.now + self.rtt_ns * number // count)
        self.now += self.rtt_ns


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_alpha_is_the_moving_average_of_the_share_of_marks(share: float) -> None:
    # alpha += g (frac - alpha), g = 1/16
    flow = Flow(200)
    # the first mark of all sets it to 1, as the window is not known
    flow.round(share)
    assert flow.growth.alpha == pytest.approx(1, abs=1 / 16)
    for _ in range(100):
        flow.growth.cwnd = 200 * SMSS
        flow.round(share)
    assert flow.growth.alpha == pytest.approx(share, rel=0.05)


def test_each_round_moves_alpha_by_a_sixteenth() -> None:
    flow = Flow(160)
    flow.growth.alpha = 0.5
    seen = []
    for _ in range(10):
        flow.round()
        seen.append(flow.growth.alpha)
    steps = [after / before for before, after in pairwise(seen)]
    assert steps == [pytest.approx(15 / 16)] * 9


def test_a_mark_takes_half_of_alpha_once_a_round_trip() -> None:
    flow = Flow(100)
    flow.growth.alpha = 0.2
    before = flow.growth.cwnd
    # all segments of a round are marked: none opens the window
    flow.round(1.0)
    assert flow.growth.cwnd == pytest.approx(before * (1 - 0.2 / 2), rel=0.01)
    assert flow.sender.counters.ecn_reductions == 1


def test_a_virtual_round_trip_is_25_ms_at_least() -> None:
    flow = Flow(100, rtt_ns=5 * MS)
    flow.growth.alpha = 0.1
    for _ in range(10):
        flow.growth.cwnd = 100 * SMSS
        flow.round(1.0)
    # 50 ms: the first mark, and one each 25 ms
    assert flow.sender.counters.ecn_reductions == 2


def test_the_first_mark_ends_slow_start_and_halves_the_window() -> None:
    flow = Flow(100, slow_start=True)
    flow.round()
    assert flow.growth.cwnd == 200 * SMSS
    flow.round(0.005)
    assert flow.growth.ssthresh == pytest.approx(100 * SMSS, rel=0.02)
    assert flow.growth.cwnd == pytest.approx(101 * SMSS, rel=0.02)


def test_unmarked_octets_open_the_window_by_a_segment_a_round_trip_in_fractions() -> None:
    flow = Flow(100)
    for _ in range(5):
        flow.round()
    assert flow.growth.cwnd == pytest.approx(105 * SMSS, abs=SMSS / 4)
    # octet by octet it is the same, and nothing is lost to rounding
    fine = Flow(100)
    for _ in range(100 * SMSS // 10):
        fine.growth.handle_ack(10, 0)
        fine.growth.handle_marks(10, 0, 0)
    assert fine.growth.cwnd == pytest.approx(101 * SMSS, abs=SMSS / 20)


def test_a_short_round_trip_opens_the_window_by_the_square_of_its_ratio_in_the_end() -> None:
    # RTT independence: (5 / 25)^2 segments in 5 ms are 0.04, and in 25 ms 0.2 of the rate of a segment more
    flow = Flow(100, rtt_ns=5 * MS, independent_after=0)
    flow.round()
    flow.growth.cwnd = 100 * SMSS
    for _ in range(25):
        flow.round()
    assert flow.growth.cwnd - 100 * SMSS == pytest.approx(25 * SMSS / 25, rel=0.1)
    early = Flow(100, rtt_ns=5 * MS)
    for _ in range(25):
        early.round()
    assert early.growth.cwnd - 100 * SMSS == pytest.approx(25 * SMSS, rel=0.15)


def test_a_loss_is_that_of_reno() -> None:
    flow = Flow(100)
    assert flow.growth.handle_loss(100 * SMSS) == 50 * SMSS
    flow.growth.handle_timeout(100 * SMSS, SMSS, first=True, recovering=False)
    assert (flow.growth.cwnd, flow.growth.ssthresh) == (SMSS, 50 * SMSS)


def test_segments_are_paced_at_a_window_per_round_trip() -> None:
    flow = Flow(100, rtt_ns=50 * MS)
    flow.round()
    growth = flow.growth
    assert growth.pacing_rate_bps == pytest.approx(8 * growth.cwnd * SECOND / (50 * MS), rel=0.001)
    # bursts of 250 us
    assert growth.send_quantum == pytest.approx(growth.cwnd / 200, rel=0.01)
    fast = Flow(100, rtt_ns=50 * MS, slow_start=True)
    fast.round()
    assert fast.growth.pacing_rate_bps == pytest.approx(2 * 8 * fast.growth.cwnd * SECOND / (50 * MS), rel=0.001)


@pytest.mark.parametrize(("segments", "gain"), [(10, 2), (49, 2), (50, 1), (99, 1), (100, 1), (150, 1)])
def test_slow_start_doubles_the_pace_until_half_of_ssthresh(segments: int, gain: int) -> None:
    # as Linux: behind half of ssthresh slow start's last round trip begins
    growth = Flow(10, rtt_ns=50 * MS, slow_start=True).growth
    growth.ssthresh = 100 * SMSS
    growth.hold(segments * SMSS)
    assert growth.pacing_rate_bps == gain * 8 * segments * SMSS * SECOND // (50 * MS)


CONFIG = TcpConfig().but(mss=1000, growth="prague", recovery="rack", dsack=True, receive_buffer=1 << 20)


@pytest.mark.parametrize(("asks", "ect"), [({"accecn": True}, ECT1), ({"ecn": True}, ECT0), ({}, 0)])
def test_data_is_ect1_where_accurate_ecn_is_agreed(asks: dict[str, bool], ect: int) -> None:
    pair = Pair(CONFIG.but(**asks), up=Path(rate_bps=10_000_000, drop=lose(30)))
    pair.send(0, 100_000)
    pair.run()
    sent = [segment for _, segment in pair.ways[0].log]
    # neither SYN, ACKs nor what is sent again
    assert {segment.ecn for segment in sent if segment.length} == {ect, 0}
    assert {segment.ecn for segment in sent if not segment.length or segment.flags & SYN} == {0}
    data = [segment.ecn for segment in sent if segment.length]
    assert data.count(0) == (1 if ect else len(data))


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ({"accecn": True}, None),
        ({"ecn": True}, "prague was Reno, as accurate ECN was not agreed"),
        ({}, "prague was Reno, as accurate ECN was not agreed"),
    ],
)
def test_reno_in_place_of_prague_says_so(server: dict[str, bool], said: str | None) -> None:
    pair = Pair(CONFIG.but(accecn=True), server_config=CONFIG.but(**server))
    assert pair.client.fallback is None
    pair.run_until(lambda: pair.client.connected)
    assert pair.client.fallback == said


def test_marks_hold_the_window_without_a_loss() -> None:
    """A queue that marks from a threshold on, as DCTCP's: the window stays near the path's."""
    pair = Pair(CONFIG.but(accecn=True), up=Path(rate_bps=10_000_000, delay_ns=25 * MS))
    way = pair.ways[0]
    assert isinstance(way, Path)

    def mark(segment: Segment) -> bool:
        if segment.ecn == ECT1 and pair.client.flight > 70_000:
            segment.ecn = CE
        return False

    way.drop = mark
    pair.backlog[0] = 1 << 40
    seen: list[int] = []
    pair.watch = lambda: seen.append(pair.client.cwnd) if pair.now > 4 * SECOND else None
    pair.run_until(lambda: pair.now > 8 * SECOND)
    assert pair.client.counters.retransmits == 0
    assert pair.client.counters.ecn_reductions > 10
    # a sawtooth of a few segments, where Reno's is half of the window
    assert min(seen) > 0.8 * 70_000
    assert max(seen) < 1.15 * 70_000


@pytest.mark.parametrize("ace", [0b010, 0b000])
def test_the_window_opens_whatever_the_last_ack_of_the_handshake_says(ace: int) -> None:
    # RFC 9768 section 3.2.2.1: after an ACE of 0 marks do not count. The acknowledgements do
    pair = Pair(CONFIG.but(accecn=True), up=Path(rate_bps=100_000_000))
    way = pair.ways[0]
    assert isinstance(way, Path)

    def clear(segment: Segment) -> bool:
        if not segment.flags & SYN and not segment.length and not pair.server.connected:
            segment.flags = segment.flags & ~(AE | CWR | ECE) | ace_flags(ace)
        return False

    way.drop = clear
    pair.run_until(lambda: pair.server.connected)
    first = pair.server.cwnd
    pair.backlog[1] = 200_000
    pair.run_until(lambda: pair.received[0] == 200_000)
    feedback = pair.server._sender.accecn
    assert feedback is not None
    assert feedback.heeds is (ace != 0)
    # slow start without a loss: the window grows by what is acknowledged, as far as it was full
    assert pair.server.counters.retransmits == 0
    assert pair.server.cwnd > 10 * first
