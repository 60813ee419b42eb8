"""draft-ietf-ccwg-bbr-06: its constants, the test cases of its appendix A, and its rules, computed over a link."""

import heapq
from collections.abc import Callable
from itertools import count, pairwise
from math import inf, log2
from random import Random

import pytest

from common.units import MS, SECOND
from hosts.tcp.config import TcpConfig
from hosts.tcp.growth import bbr3
from hosts.tcp.growth.bbr3 import PACING_GAINS, AckPhase, Bbr3, MaxFilter, State
from hosts.tcp.recovery import RECOVERIES
from tcpip.segment import Segment
from tests.hosts.tcp.pair import Pair, Path, lose

SMSS = 1000
CONFIG = TcpConfig().but(
    mss=SMSS, recovery="rack", growth="bbr3", frto=True, dsack=True, timestamps=False, initial_window=10,
    receive_buffer=1 << 22, send_buffer=1 << 22, delayed_ack_ns=40 * MS, min_rto_ns=200 * MS,
)  # fmt: skip
#: of 1040 octets
PAYLOAD_SHARE = SMSS / (SMSS + 40)

ORDER = {
    # section 5.1.1: the diagram, ProbeRTT and spurious losses (5.5.11.2) aside; an ACK may pass through several
    State.STARTUP: {State.DRAIN},
    State.DRAIN: {State.PROBE_BW_DOWN, State.PROBE_BW_CRUISE},
    State.PROBE_BW_DOWN: {State.PROBE_BW_CRUISE, State.PROBE_BW_REFILL},
    State.PROBE_BW_CRUISE: {State.PROBE_BW_REFILL},
    State.PROBE_BW_REFILL: {State.PROBE_BW_UP},
    State.PROBE_BW_UP: {State.PROBE_BW_DOWN, State.PROBE_BW_CRUISE},
    State.PROBE_RTT: {State.PROBE_BW_CRUISE, State.STARTUP},
}


class Link(Path):
    """A link whose rate and delay change, with a drop-tail buffer; `held` segments take 60 ms longer."""

    def __init__(
        self,
        rate_bps: int = 2_000_000,
        delay_ns: int = 25 * MS,
        buffer_bytes: int = 200_000,
        held: tuple[int, ...] = (),
    ) -> None:
        super().__init__()
        self.rate_bps, self.delay_ns, self.buffer_bytes, self.held = rate_bps, delay_ns, buffer_bytes, held
        self.free_at = self.data = 0
        self.flying: list[tuple[int, int, Segment]] = []
        self.tie = count()

    def send(self, segment: Segment, now: int) -> None:
        self.log.append((now, segment))
        self.data += segment.length > 0
        waiting = max(self.free_at - now, 0) * self.rate_bps / 8 / SECOND
        if self.drop(segment) or waiting > self.buffer_bytes:
            return
        self.free_at = max(self.free_at, now) + len(segment) * 8 * SECOND // self.rate_bps
        at = self.free_at + self.delay_ns + (60 * MS if segment.length and self.data in self.held else 0)
        heapq.heappush(self.flying, (at, next(self.tie), segment))

    def receive(self, now: int) -> Segment | None:
        return heapq.heappop(self.flying)[2] if self.flying and self.flying[0][0] <= now else None

    def next_deadline(self) -> int | None:
        return self.flying[0][0] if self.flying else None


class Flow:
    """A sender over a link, and the states it has gone through: (ns, state)."""

    def __init__(self, link: Link | None = None, config: TcpConfig = CONFIG, nbytes: int = 1 << 40) -> None:
        self.link = link or Link()
        self.pair = Pair(config, up=self.link, down=Link(100_000_000))
        self.pair.run_until(lambda: self.pair.client.connected and self.pair.server.connected)
        growth = self.pair.client._sender.growth
        assert isinstance(growth, Bbr3)
        self.bbr = growth
        delivery = self.pair.client._sender.delivery
        assert delivery is not None
        self.delivery = delivery
        self.states: list[tuple[int, State]] = [(self.pair.now, State.STARTUP)]
        #: how long after the beginning of its cycle each REFILL has begun (ns)
        self.refilled: list[int] = []
        self.watch: Callable[[], None] = lambda: None
        self.pair.watch = self._note
        self.pair.backlog[0] = nbytes

    def _note(self) -> None:
        if self.bbr.state is not self.states[-1][1]:
            self.states.append((self.pair.now, self.bbr.state))
            if self.bbr.state is State.PROBE_BW_REFILL:
                self.refilled.append(self.pair.now - self.bbr.cycle_stamp)
        self.watch()

    def until(self, *states: State) -> "Flow":
        self.pair.run_until(lambda: self.bbr.state in states, 60 * SECOND)
        return self

    def after(self, seconds: float) -> "Flow":
        end = self.pair.now + round(seconds * SECOND)
        self.pair.run_until(lambda: self.pair.now >= end)
        return self

    def pause(self) -> None:
        """The application has nothing more to send."""
        client = self.pair.client
        self.pair.backlog[0] = 0
        buffer = client._sender.buffer
        buffer.end = max(client._sender.max, buffer.start)

    def trickle(self, nbytes: int, every_ns: int, seconds: float) -> None:
        """The application writes `nbytes` every so often, for some time."""
        self.pause()
        end, due = self.pair.now + round(seconds * SECOND), self.pair.now
        while self.pair.now < end:
            self.pair.client.write(nbytes)
            due += every_ns
            self.pair._serve()
            while (times := [at for what in (*self.pair.ends, *self.pair.ways) if (at := what.next_deadline())]) and (
                min(times) <= due
            ):
                self.pair.now = max(self.pair.now, min(times))
                self.pair._step()
            self.pair.now = due

    @property
    def payload_rate(self) -> float:
        """Octets per second of payload that the link carries."""
        return self.link.rate_bps / 8 * PAYLOAD_SHARE

    def assert_order(self) -> None:
        for (_, before), (at, after) in pairwise(self.states):
            assert after in ORDER[before] or after is State.PROBE_RTT, f"{before} to {after} at {at / SECOND:.3f} s"


def test_the_constants_are_the_drafts() -> None:
    # sections 2.5 to 2.16 and 5.6.1
    assert (bbr3.LOSS_THRESH, bbr3.BETA, bbr3.HEADROOM, bbr3.MIN_PIPE_SEGMENTS) == (0.02, 0.7, 0.15, 4)
    assert bbr3.PROBE_RTT_INTERVAL_NS / SECOND == 5
    assert bbr3.PROBE_RTT_DURATION_NS / SECOND == 0.2
    assert bbr3.MIN_RTT_FILTER_LEN_NS / SECOND == 10
    assert (bbr3.PACING_MARGIN_PERCENT, bbr3.EXTRA_ACKED_FILTER_LEN, bbr3.STARTUP_FULL_LOSS_COUNT) == (1, 10, 6)
    assert [PACING_GAINS[state] for state in State] == [2.77, 0.5, 0.9, 1.0, 1.0, 1.25, 1.0]


def test_the_max_filter_forgets_after_its_window() -> None:
    found, values = MaxFilter(), [(0, 5.0), (1, 3.0), (2, 4.0), (10, 1.0), (12, 2.0)]
    kept: list[tuple[int, float]] = []
    for time, value in values:
        kept.append((time, value))
        assert found.update(value, time, 10) == max(each for at, each in kept if at > time - 10)


def test_startup_ends_on_a_plateau_with_the_bandwidth_within_two_percent() -> None:
    # appendix A.1
    flow = Flow()
    counts: list[int] = []
    flow.watch = lambda: counts.append(flow.bbr.full_bw_count)
    flow.until(State.DRAIN)
    assert max(counts) == 3
    assert flow.bbr.full_bw_reached
    assert flow.bbr.max_bw == pytest.approx(flow.payload_rate, rel=0.02)
    assert flow.pair.client.counters.retransmits == 0


def test_startup_finds_the_bandwidth_in_rounds_that_grow_with_the_logarithm_of_the_bdp() -> None:
    # section 5.3.1.1: "in O(log_2(BDP)) round trips"; three more see the plateau
    rounds = []
    for rate_bps in (5_000_000, 20_000_000, 80_000_000):
        flow = Flow(Link(rate_bps, buffer_bytes=1 << 20)).until(State.DRAIN)
        assert flow.bbr.max_bw == pytest.approx(flow.payload_rate, rel=0.02)
        rounds.append(flow.bbr.round_count - log2(rate_bps / 5_000_000))
    assert max(rounds) - min(rounds) <= 2
    assert max(rounds) <= 3 + 5


def test_startup_ends_on_losses_though_the_application_limits() -> None:
    # appendix A.2: more than 2 % lost, in six ranges and more, within a round
    flow = Flow(Link(20_000_000, 50 * MS))
    flow.trickle(20_000, 20 * MS, 1)
    assert flow.bbr.state is State.STARTUP
    sent = count()
    flow.link.drop = lambda segment: segment.length > 0 and next(sent) % 8 == 0
    flow.trickle(20_000, 20 * MS, 1)
    assert flow.bbr.state is not State.STARTUP
    assert flow.bbr.full_bw_reached
    # Drain was over with the same ACK: less than a BDP was in flight
    assert flow.states[1][1] in (State.DRAIN, State.PROBE_BW_CRUISE)
    assert flow.bbr.inflight_longterm < inf


def test_a_loss_or_five_do_not_end_startup() -> None:
    # section 5.3.1.3: "at least BBRStartupFullLossCnt=6 discontiguous sequence ranges"
    flow = Flow(Link(20_000_000, 50 * MS))
    flow.link.drop = lose(*range(50, 60, 2))
    flow.trickle(20_000, 20 * MS, 1)
    assert flow.pair.client.counters.retransmits == 5
    assert flow.bbr.state is State.STARTUP


@pytest.mark.parametrize("nbytes", [20_000, 19_500])
def test_startup_goes_on_while_the_application_limits_and_nothing_is_lost(nbytes: int) -> None:
    # appendix A.7; until ProbeRTT, which returns to it (A.20). The last segment of a write is not full
    flow = Flow(Link(20_000_000, 50 * MS))
    flow.trickle(nbytes, 20 * MS, 12)
    assert {state for _, state in flow.states} == {State.STARTUP, State.PROBE_RTT}
    assert not flow.bbr.full_bw_reached


def test_drain_ends_with_a_bdp_in_flight() -> None:
    # appendix A.3
    flow = Flow().until(State.DRAIN)
    assert flow.bbr.pacing_gain == bbr3.DRAIN_PACING_GAIN
    inflight: list[tuple[int, float]] = []
    flow.watch = lambda: inflight.append((flow.delivery.inflight, flow.bbr._inflight(flow.bbr.bw, 1.0)))
    flow.until(State.PROBE_BW_DOWN, State.PROBE_BW_CRUISE)
    last, bound = inflight[-1]
    assert last <= bound + SMSS
    assert flow.bbr.round_count <= flow.bbr.drain_start_round + 3


def test_drain_ends_after_three_rounds_with_more_in_flight() -> None:
    # appendix A.4: the bandwidth was overestimated
    flow = Flow(Link(4_000_000)).until(State.DRAIN)
    flow.link.rate_bps = 1_000_000
    flow.bbr.pacing_gain = 1.0
    flow.until(State.PROBE_BW_DOWN)
    assert flow.bbr.round_count == flow.bbr.drain_start_round + 4
    assert flow.delivery.inflight > flow.bbr._inflight(flow.bbr.bw, 1.0)


def test_the_states_follow_one_another_and_no_segment_is_lost() -> None:
    flow = Flow().after(14)
    flow.assert_order()
    seen = [state for _, state in flow.states]
    assert {*State} == {*seen}
    assert flow.pair.client.counters.retransmits == 0


def test_probe_up_ends_on_a_plateau() -> None:
    # appendix A.5; PROBE_DOWN has gain 0.9 and ends with a BDP in flight (A.8)
    flow = Flow().until(State.PROBE_BW_UP)
    assert (flow.bbr.pacing_gain, flow.bbr.cwnd_gain) == (1.25, 2.25)
    flow.until(State.PROBE_BW_DOWN)
    assert flow.bbr.full_bw_now
    assert flow.bbr.pacing_gain == 0.9
    assert not flow.bbr.prev_probe_too_high
    flow.until(State.PROBE_BW_CRUISE)
    assert flow.delivery.inflight <= flow.bbr._inflight(flow.bbr.max_bw, 1.0)
    assert flow.bbr.pacing_gain == 1.0


def test_probes_are_as_far_apart_as_the_draft_says() -> None:
    # section 5.3.3.8.2: T_probe = min(T_bbr, T_reno): 2 to 3 s, or a round per segment of the BDP, 63 at most
    for rate_bps, delay_ns, least_s, most_s in (
        # a BDP of some 12 segments at 56 ms: 11 to 16 rounds, with queues
        (2_000_000, 25 * MS, 0.4, 1.6),
        # a BDP of 200 segments at 400 ms: by the clock
        (4_000_000, 200 * MS, 2.0, 3.5),
    ):
        flow = Flow(Link(rate_bps, delay_ns))
        flow.refilled.clear()
        waits = flow.after(20).refilled
        assert len(waits) >= 3
        assert all(least_s * SECOND <= wait <= most_s * SECOND for wait in waits), [wait / SECOND for wait in waits]


def test_probe_rtt_comes_after_five_seconds_and_takes_200_ms_and_a_round() -> None:
    # appendix A.10, section 5.3.4.1
    flow = Flow()
    seen: list[tuple[float, int]] = []

    def watch() -> None:
        if flow.bbr.state is State.PROBE_RTT:
            seen.append((flow.bbr.cwnd_gain, flow.bbr.cwnd))
            assert flow.bbr.cwnd <= max(4 * SMSS, flow.bbr.bdp / 2)

    flow.watch = watch
    flow.after(17)
    spans = [(at, following) for (at, state), (following, _) in pairwise(flow.states) if state is State.PROBE_RTT]
    assert len(spans) == 3
    for (begin, end), following in zip(spans, [*(at for at, _ in spans[1:]), None], strict=True):
        assert 200 * MS < end - begin < 500 * MS
        if following is not None:
            # "the minimum time interval between ProbeRTT states"; a lower round trip in between defers it
            assert 5 * SECOND < following - end < 6 * SECOND
    assert {gain for gain, _ in seen} == {0.5}
    # the round trip is the path's: 50 ms and the times of a segment and of its ACK
    assert 50 * MS <= flow.bbr.min_rtt_ns <= 56 * MS


def test_an_idle_application_needs_no_probe_rtt() -> None:
    # appendix A.11
    flow = Flow().until(State.PROBE_BW_CRUISE)
    flow.pause()
    flow.pair.run_until(lambda: flow.delivery.inflight == 0)
    flow.pair.now += 6 * SECOND
    cwnd = flow.bbr.cwnd
    flow.pair.client.write(20_000)
    flow.pair._serve()
    assert flow.bbr.idle_restart
    # section 5.4.1: the window stays, and the rate is BBR.bw
    assert flow.bbr.cwnd == cwnd
    assert flow.bbr.pacing_rate == pytest.approx(0.99 * flow.bbr.bw)
    flow.after(0.1)
    assert not flow.bbr.idle_restart
    assert State.PROBE_RTT not in {state for _, state in flow.states}


def test_a_path_of_less_than_a_segment_has_four_in_flight() -> None:
    # appendix A.14, section 5.6.4.3
    flow = Flow(Link(64_000, 1 * MS)).after(8)
    least: list[int] = []
    flow.watch = lambda: least.append(flow.bbr.cwnd)
    before = flow.pair.received[1]
    flow.after(20)
    assert min(least) == 4 * SMSS
    assert flow.pair.received[1] - before > 0.9 * 20 * flow.payload_rate


def test_ten_times_the_bandwidth_is_found() -> None:
    # appendix A.15: within one phase of probing, "O(log(BDP))" rounds
    flow = Flow().until(State.PROBE_BW_CRUISE)
    flow.link.rate_bps *= 10
    flow.after(8)
    assert flow.bbr.max_bw > 0.9 * flow.payload_rate


def test_a_tenth_of_the_bandwidth_is_learned_within_two_cycles() -> None:
    # appendix A.16
    flow = Flow(Link(20_000_000, buffer_bytes=100_000)).until(State.PROBE_BW_CRUISE)
    flow.link.rate_bps //= 10
    flow.pair.run_until(lambda: flow.bbr.bw_shortterm < inf)
    cycle = flow.bbr.cycle_count
    flow.pair.run_until(lambda: flow.bbr.cycle_count >= cycle + 3, 60 * SECOND)
    assert flow.bbr.max_bw < 1.3 * flow.payload_rate


def test_losses_while_cruising_lower_the_short_term_bounds_by_beta_at_most() -> None:
    # section 5.5.10.3
    flow = Flow().until(State.PROBE_BW_CRUISE)
    seen: list[tuple[float, float]] = []
    flow.watch = lambda: seen.append((flow.bbr.bw_shortterm, flow.bbr.inflight_shortterm))
    flow.link.drop = lose(1, 2)
    flow.after(0.3)
    bw, inflight = zip(*seen, strict=True)
    assert min(bw) < inf
    assert min(inflight) < inf
    for bounds in (bw, inflight):
        for before, after in pairwise(bounds):
            assert after >= 0.7 * before or before == inf
    assert flow.bbr.inflight_longterm == inf
    # the next REFILL drops them
    flow.until(State.PROBE_BW_REFILL)
    assert (flow.bbr.bw_shortterm, flow.bbr.inflight_shortterm) == (inf, inf)


def test_too_many_losses_in_a_probe_set_the_long_term_bound_and_end_it() -> None:
    # appendix A.21, section 5.5.10.2
    flow = Flow(Link(10_000_000)).until(State.PROBE_BW_UP)
    flow.after(0.06)
    assert flow.bbr.state is State.PROBE_BW_UP
    flow.link.drop = lose(*range(1, 6))
    flow.pair.run_until(lambda: flow.bbr.prev_probe_too_high)
    bbr = flow.bbr
    assert bbr.state is State.PROBE_BW_DOWN
    assert 0.7 * min(bbr.bdp, bbr.cwnd) <= bbr.inflight_longterm < 2 * bbr.bdp
    assert bbr.undo_state is State.PROBE_BW_UP
    # section 5.3.3.6: the next probe is precautionary, and the one behind it follows at once
    flow.link.drop = lambda segment: False
    flow.until(State.PROBE_BW_UP)
    flow.pair.run_until(lambda: bbr.state is not State.PROBE_BW_UP)
    assert bbr.prev_probe_precautionary
    began = flow.pair.now
    flow.until(State.PROBE_BW_REFILL)
    assert flow.pair.now - began < 3 * 100 * MS


def test_a_full_buffer_bounds_what_is_in_flight() -> None:
    # section 5.3.3.7, rule 2: a probe ends once 2 % are lost
    flow = Flow(Link(buffer_bytes=6_000)).after(20)
    assert flow.bbr.inflight_longterm < inf
    sent, again = flow.pair.client.counters.data_segments_sent, flow.pair.client.counters.retransmits
    assert 0 < again < 0.02 * sent
    assert flow.pair.received[1] > 0.85 * 20 * flow.payload_rate


def test_app_limited_samples_do_not_lower_max_bw() -> None:
    # section 5.5.4, appendix A.22
    flow = Flow().until(State.PROBE_BW_REFILL)
    before = flow.bbr.max_bw
    flow.trickle(2_000, 100 * MS, 8)
    assert flow.bbr.max_bw == before
    assert flow.bbr.bw >= 0.9 * before or flow.bbr.bw_shortterm < inf


def test_a_late_segment_in_startup_is_no_loss_in_the_end() -> None:
    # appendix A.18: HandleSpuriousLossDetection
    flow = Flow(Link(10_000_000, held=(40,)))
    flow.pair.run_until(lambda: flow.pair.client.counters.reductions_taken_back == 1, 3 * SECOND)
    assert flow.bbr.state in (State.STARTUP, State.DRAIN)
    assert flow.bbr.undo_state is None
    assert (flow.bbr.bw_shortterm, flow.bbr.inflight_shortterm) == (inf, inf)
    assert flow.bbr.cwnd >= flow.bbr.prior_cwnd


def test_a_spurious_end_of_a_probe_begins_it_again() -> None:
    # section 5.5.11.2
    flow = Flow(Link(10_000_000)).until(State.PROBE_BW_UP).after(0.06)
    flow.link.drop = lose(*range(1, 6))
    flow.pair.run_until(lambda: flow.bbr.state is State.PROBE_BW_DOWN)
    flow.bbr.restore(0, 0)
    assert flow.bbr.state is State.PROBE_BW_REFILL
    assert flow.bbr.inflight_longterm == inf


def test_a_spurious_end_of_startup_begins_it_again() -> None:
    # section 5.5.11.2
    flow = Flow(Link(20_000_000, 50 * MS)).after(0.25)
    assert flow.bbr.state is State.STARTUP
    sent = count()
    flow.link.drop = lambda segment: segment.length > 0 and next(sent) % 8 == 0
    flow.pair.run_until(lambda: flow.bbr.state is not State.STARTUP)
    flow.link.drop = lambda segment: False
    assert flow.bbr.full_bw_reached
    assert flow.bbr.inflight_longterm < inf
    flow.bbr.restore(0, 0)
    assert (flow.bbr.state, flow.bbr.full_bw_reached, flow.bbr.inflight_longterm) == (State.STARTUP, False, inf)
    # Startup ends in its own time, though with less than the bandwidth: the losses were real
    flow.until(State.PROBE_BW_CRUISE)
    assert 0.8 * flow.payload_rate < flow.bbr.max_bw < 1.02 * flow.payload_rate


def test_a_timeout_leaves_a_segment_and_the_window_returns_with_the_recovery() -> None:
    # section 5.6.4.4
    flow = Flow().until(State.PROBE_BW_CRUISE)
    before = flow.bbr.cwnd
    flow.link.drop = lambda segment: True
    flow.pair.run_until(lambda: flow.pair.client.counters.timeouts == 1)
    assert flow.bbr.cwnd == SMSS
    flow.link.drop = lambda segment: False
    flow.pair.run_until(lambda: not flow.bbr._in_loss_recovery())
    assert flow.bbr.cwnd >= min(before, flow.bbr.max_inflight, flow.bbr.inflight_shortterm)


def test_ce_marks_are_congestion() -> None:
    # section 3.7: "MUST treat any CE marks as congestion"
    flow = Flow().until(State.PROBE_BW_CRUISE)
    flow.bbr.handle_mark(flow.pair.client.flight)
    flow.after(0.2)
    assert flow.bbr.bw_shortterm < inf
    flow.until(State.PROBE_BW_UP).after(0.06)
    assert flow.bbr.is_bw_probe_sample
    flow.bbr.handle_mark(flow.pair.client.flight)
    assert flow.bbr.inflight_longterm < inf
    assert flow.bbr.ack_phase is AckPhase.PROBE_STOPPING
    starting = Flow()
    starting.bbr.handle_mark(starting.pair.client.flight)
    starting.after(0.2)
    assert State.DRAIN in {state for _, state in starting.states}


def test_random_numbers_are_the_hosts() -> None:
    # section 5.3.3.8.3: PickProbeWait
    def waits(seed: int) -> list[int]:
        flow = Flow()
        flow.bbr._rng = Random(seed)
        found = []
        for _ in range(20):
            flow.bbr._pick_probe_wait()
            found += [flow.bbr.bw_probe_wait_ns, flow.bbr.rounds_since_probe_up]
        return found

    assert waits(1) == waits(1) != waits(2)
    assert all(2 * SECOND <= wait <= 3 * SECOND for wait in waits(1)[::2])
    assert {*waits(1)[1::2]} == {0, 1}


@pytest.mark.parametrize("recovery", RECOVERIES)
def test_what_a_connection_counts_as_delivered_is_what_arrives(recovery: str) -> None:
    drops = lose(3, 30, 31, 32, 90)
    pair = Pair(CONFIG.but(recovery=recovery), up=Path(rate_bps=2_000_000, drop=drops))
    pair.send(0, 150_000)
    pair.run()
    delivery = pair.client._sender.delivery
    assert delivery is not None
    # the FIN is an octet; a segment that came twice is delivered once
    assert delivery.delivered == 150_001
    assert (delivery.inflight, delivery.sent.lost) == (0, 0)
    # each of the five losses, once at least
    assert delivery.lost >= 5 * SMSS


@pytest.mark.parametrize("recovery", RECOVERIES)
def test_with_each_recovery_the_link_is_filled(recovery: str) -> None:
    flow = Flow(config=CONFIG.but(recovery=recovery)).after(10)
    assert flow.pair.received[1] > 0.9 * 10 * flow.payload_rate
