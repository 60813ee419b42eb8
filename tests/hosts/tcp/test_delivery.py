"""draft-ietf-ccwg-bbr-06 section 4.1: delivery rate samples, each statement computed."""

from collections.abc import Callable

import pytest

from common.units import MS, SECOND
from hosts.tcp.counters import Counters
from hosts.tcp.delivery import DeliveryRate, RateSample
from hosts.tcp.growth import Growth
from hosts.tcp.options import LossOptions, TimerOptions
from hosts.tcp.recovery import RECOVERIES
from hosts.tcp.recovery.transmissions import Transmission
from hosts.tcp.send_state import SendState

SMSS = 1000
RTT = 100 * MS


class Noting(Growth):
    """Keeps its samples and losses."""

    def __init__(self, sender: SendState) -> None:
        super().__init__(sender)
        self.samples: list[RateSample] = []
        self.losses: list[tuple[int, int]] = []

    def handle_ack(self, acked: int, now: int) -> None: ...

    def threshold(self, flight: int) -> int:
        return flight

    def handle_sample(self, sample: RateSample, now: int) -> None:
        self.samples.append(sample)

    def handle_lost(self, lost: Transmission, now: int) -> None:
        self.losses.append((lost.start, lost.end))


class Bench:
    """An estimator alone: segments of `SMSS` octets, numbered from 0, are sent and acknowledged at given times."""

    def __init__(self, cwnd: int = 1 << 20) -> None:
        self.sender = sender = SendState(TimerOptions(), LossOptions(), SMSS, Counters(), 0)
        sender.sack = True
        sender.growth = self.growth = Noting(sender)
        sender.recovery = RECOVERIES["rack"].make(sender, None)
        sender.buffer.append(1 << 30)
        sender.rto.srtt_ns = 1
        self.growth.cwnd = cwnd
        self.rate = DeliveryRate(sender)

    def send(self, now: int, *numbers: int, fresh: bool = True) -> None:
        for number in numbers:
            self.rate.handle_sent(number * SMSS, (number + 1) * SMSS, fresh, now)
            self.sender.max = self.sender.nxt = max(self.sender.max, (number + 1) * SMSS)

    def ack(self, now: int, up_to: int | None = None, blocks: tuple[int, ...] = ()) -> RateSample | None:
        """Acknowledge all segments below a number, and selectively those of `blocks`; return the sample."""
        before = len(self.growth.samples)
        self.rate.begin()
        if up_to is not None:
            self.rate.handle_acked(up_to * SMSS, now)
            self.sender.una = up_to * SMSS
        for number in blocks:
            self.rate.handle_block(number * SMSS, (number + 1) * SMSS, now)
        self.rate.finish(now)
        return self.growth.samples[-1] if len(self.growth.samples) > before else None


def sampled(sample: RateSample | None) -> RateSample:
    assert sample is not None
    return sample


def test_the_rate_is_what_was_delivered_over_the_longer_interval() -> None:
    # delivery_elapsed = max(ack_elapsed, send_elapsed); delivery_rate = data_acked / delivery_elapsed
    bench = Bench()
    for number in range(4):
        bench.send(number * 5 * MS, number)
    # the ACKs come 10 ms apart: slower than the segments went
    samples = [sampled(bench.ack(RTT + number * 10 * MS, number + 1)) for number in range(4)]
    # all were sent before any ACK: from the first transmission on (4.1.2.2)
    assert [sample.delivered for sample in samples] == [1000, 2000, 3000, 4000]
    assert [sample.ack_elapsed for sample in samples] == [RTT + number * 10 * MS for number in range(4)]
    assert [sample.send_elapsed for sample in samples] == [0, 5 * MS, 10 * MS, 15 * MS]
    assert [sample.delivery_rate for sample in samples] == [
        pytest.approx(sample.delivered * SECOND / sample.ack_elapsed) for sample in samples
    ]


def test_compressed_acks_do_not_raise_the_rate_above_that_of_sending() -> None:
    # 4.1.1.2.4: "capping the delivery rate sample to be no higher than the send rate"
    bench = Bench()
    bench.send(0, 0)
    bench.ack(RTT, 1)
    # 100 octets per ms, the first as soon as the ACK has come
    for number in range(1, 12):
        bench.send(RTT + (number - 1) * 10 * MS, number)
    # the way back holds the ACKs of ten segments up, and then they come within a millisecond
    for number in range(1, 11):
        bench.ack(2 * RTT + 100 * MS + number * 100_000, number + 1)
    # a flight from the first of these ACKs on: its own are just as close together
    bench.send(2 * RTT + 101 * MS, 12)
    bench.send(2 * RTT + 181 * MS, 13)
    sample = sampled(bench.ack(3 * RTT + 101 * MS, 14))
    assert (sample.ack_elapsed, sample.send_elapsed) == (RTT, RTT + 91 * MS)
    assert sample.interval == sample.send_elapsed
    assert sample.delivery_rate < 100_000


def test_a_stretched_ack_gives_one_sample_by_the_newest_segment() -> None:
    # 4.1.2.3: UpdateRateSample for each segment, "the information from the most recently sent packet"
    bench = Bench()
    for number in range(3):
        bench.send(number * 10 * MS, number)
    sample = sampled(bench.ack(RTT + 20 * MS, 3))
    assert (sample.newly_acked, sample.delivered) == (3000, 3000)
    # RS.rtt is that of the segment sent last (5.5.7.1), RS.tx_in_flight what was in flight behind it
    assert (sample.rtt_ns, sample.tx_in_flight) == (RTT, 3000)
    assert sample.send_elapsed == 20 * MS


def test_a_selective_ack_delivers_and_the_cumulative_one_does_not_again() -> None:
    bench = Bench()
    bench.send(0, 0, 1, 2)
    assert sampled(bench.ack(RTT, blocks=(2,))).newly_acked == 1000
    # a segment that was acknowledged already gives no sample
    assert bench.ack(RTT + MS, blocks=(2,)) is None
    assert sampled(bench.ack(RTT + 2 * MS, 3)).newly_acked == 2000
    assert bench.rate.delivered == 3000
    assert bench.rate.inflight == 0


def test_reordering_does_not_matter() -> None:
    # 4.1.3.4: "for a particular packet P, it does not matter which packets are delivered between"
    def delivered(order: tuple[int, ...]) -> list[tuple[int, int]]:
        bench = Bench()
        bench.send(0, 0, 1, 2, 3)
        found = []
        for place, number in enumerate(order):
            sample = sampled(bench.ack(RTT + place * MS, blocks=(number,)))
            found.append((sample.delivered, sample.interval))
        return found

    assert delivered((0, 1, 2, 3)) == delivered((3, 1, 0, 2))


def test_a_lost_ack_lowers_the_sample_by_its_longer_interval_only() -> None:
    # 4.1.3.2
    whole, torn = Bench(), Bench()
    for bench in (whole, torn):
        for number in range(4):
            bench.send(number * 10 * MS, number)
    for number in range(3):
        whole.ack(RTT + number * 10 * MS, number + 1)
    sample = sampled(whole.ack(RTT + 30 * MS, 4))
    assert sampled(torn.ack(RTT + 30 * MS, 4)).delivery_rate == sample.delivery_rate


def test_what_was_lost_since_a_segment_left_is_in_its_sample() -> None:
    # 2.3: RS.lost, "declared lost between the transmission and acknowledgment"
    bench = Bench()
    bench.send(0, 0, 1, 2, 3)
    bench.ack(RTT, 1)
    bench.rate.handle_lost(1 * SMSS, 2 * SMSS, RTT)
    assert bench.growth.losses == [(1000, 2000)]
    assert bench.rate.inflight == 2000
    bench.send(RTT, 4)
    sample = sampled(bench.ack(RTT + 10 * MS, blocks=(2,)))
    assert (sample.lost, sample.newly_lost, bench.rate.lost) == (1000, 1000, 1000)
    # the segment that left after the loss has none
    assert sampled(bench.ack(2 * RTT, blocks=(4,))).lost == 0


def test_a_segment_found_lost_that_arrives_is_delivered() -> None:
    bench = Bench()
    bench.send(0, 0, 1)
    bench.rate.handle_lost(0, SMSS, RTT)
    assert sampled(bench.ack(2 * RTT, 2)).newly_acked == 2000
    assert (bench.rate.delivered, bench.rate.inflight, bench.rate.sent.lost) == (2000, 0, 0)


def test_an_interval_below_the_least_round_trip_gives_no_rate() -> None:
    # 4.1.2.3: "if (RS.interval < C.min_rtt) return  /* no reliable rate sample */"; 4.1.3.5, the first approach
    bench = Bench()
    bench.rate.min_rtt_ns = RTT
    bench.send(0, 0, 1)
    # nothing else is in flight; an ACK of the first transmission comes 1 ms after the second
    bench.rate.handle_lost(0, 2 * SMSS, 2 * RTT)
    bench.send(2 * RTT, 0, fresh=False)
    sample = sampled(bench.ack(2 * RTT + MS, 1))
    assert sample.delivery_rate == 0
    assert sample.delivered == 1000
    # nor a round-trip time, which would be that of nothing
    assert sample.rtt_ns == -1
    assert bench.rate.min_rtt_ns == RTT


def test_after_idleness_an_interval_begins_with_the_transmission() -> None:
    # 4.1.2.2: "If there is no data in flight yet, then we can start the delivery rate interval at the current time"
    bench = Bench()
    bench.send(0, 0)
    bench.ack(RTT, 1)
    bench.send(10 * SECOND, 1)
    sample = sampled(bench.ack(10 * SECOND + RTT, 2))
    assert (sample.interval, sample.delivered) == (RTT, 1000)
    assert sample.delivery_rate == pytest.approx(1000 * SECOND / RTT)


def test_samples_of_a_time_without_data_say_so_until_the_bubble_is_gone() -> None:
    # 4.1.1.3: "it marks all bandwidth samples for the next round trip as application-limited"
    bench = Bench()
    bench.send(0, 0, 1)
    sender = bench.sender
    # nothing is left to send, and the window has room
    sender.buffer.end = 2 * SMSS
    bench.rate.check_app_limited()
    assert bench.rate.app_limited == 2000
    sender.buffer.end = 1 << 30
    bench.send(10 * MS, 2, 3)
    assert not sampled(bench.ack(RTT, 2)).is_app_limited
    # delivered is not yet above what was in flight then
    bench.send(RTT, 4)
    assert sampled(bench.ack(RTT + 10 * MS, 3)).is_app_limited
    assert bench.rate.app_limited == 0
    bench.send(RTT + 11 * MS, 5)
    assert sampled(bench.ack(RTT + 12 * MS, 4)).is_app_limited
    assert sampled(bench.ack(2 * RTT, 5)).is_app_limited
    assert not sampled(bench.ack(2 * RTT + 11 * MS, 6)).is_app_limited


def unsent(bench: Bench) -> None:
    bench.sender.buffer.end = 1 << 30


def full(bench: Bench) -> None:
    bench.growth.cwnd = 2 * SMSS


def lost(bench: Bench) -> None:
    bench.rate.handle_lost(0, SMSS, 0)


def again(bench: Bench) -> None:
    bench.sender.nxt = bench.sender.una


@pytest.mark.parametrize("why", [unsent, full, lost, again])
def test_a_sender_with_something_to_send_or_a_full_window_is_not_app_limited(why: Callable[[Bench], None]) -> None:
    # 4.1.2.4: NoUnsentData, inflight < cwnd, lost_out <= retrans_out
    bench = Bench()
    bench.send(0, 0, 1)
    bench.sender.buffer.end = 2 * SMSS
    why(bench)
    bench.rate.check_app_limited()
    assert bench.rate.app_limited == 0


def test_octets_that_nagle_holds_are_nothing_to_send() -> None:
    # 4.1.1.3: "is not currently sending data and has no data to send"; a segment in part waits for the ACK
    bench = Bench()
    bench.send(0, 0, 1)
    bench.sender.buffer.end = 3 * SMSS - 1
    bench.rate.check_app_limited()
    assert bench.rate.app_limited == 0
    bench.sender.nagle = True
    bench.rate.check_app_limited()
    assert bench.rate.app_limited == 2 * SMSS


@pytest.mark.parametrize(("end", "closing"), [(3 * SMSS, False), (3 * SMSS - 1, True)])
def test_a_whole_segment_and_the_last_one_do_not_wait(end: int, closing: bool) -> None:
    bench = Bench()
    bench.send(0, 0, 1)
    sender = bench.sender
    sender.nagle, sender.buffer.end, sender.closing = True, end, closing
    bench.rate.check_app_limited()
    assert bench.rate.app_limited == 0


def test_a_window_that_was_full_within_the_last_round_is_limited() -> None:
    # 2.2: C.is_cwnd_limited
    bench = Bench(cwnd=3 * SMSS)
    bench.send(0, 0)
    assert not bench.rate.is_cwnd_limited
    bench.send(0, 1, 2)
    assert bench.rate.is_cwnd_limited
    for number in range(3, 6):
        bench.growth.cwnd = 10 * SMSS
        now = (number - 2) * RTT
        bench.ack(now, number)
        bench.send(now, number)
    assert not bench.rate.is_cwnd_limited
