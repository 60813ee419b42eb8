"""BBR version 3: a model of the path, its bandwidth and its round trip, in place of a window that losses cut.

Read first: draft-ietf-ccwg-bbr-06 (July 2026), whose section numbers and names are used here; `hosts/tcp/delivery.py`
for its input signals (section 4), `hosts/tcp/pacing.py` for its output (section 5.6.2). A method has the name of the
draft's function, an attribute that of `BBR.`name. Volumes are in octets, rates in octets per second, times in ns.

| state | tactic | pacing gain | cwnd gain | left when |
|---|---|---|---|---|
| Startup | faster | 2.77 | 2 | the delivery rate has stopped growing for three rounds, or losses exceed 2 % |
| Drain | slower | 0.5 | 2 | a BDP is in flight, or after three rounds |
| ProbeBW_DOWN | slower | 0.9 | 2 | a BDP is in flight, and headroom is left |
| ProbeBW_CRUISE | as fast | 1 | 2 | 2 to 3 s, or a round per segment of a BDP (63 at most), have passed since a probe |
| ProbeBW_REFILL | as fast | 1 | 2 | after a round |
| ProbeBW_UP | faster | 1.25 | 2.25 | the delivery rate has stopped growing, or losses exceed 2 % |
| ProbeRTT | half a BDP | 1 | 0.5 | 200 ms and a round; entered when 5 s have brought no lower round trip |

Where the draft's pseudocode is silent or at odds with its text (docs/transports.md lists each):

- the gains of the ProbeBW states are those of its table (section 5.6.1)
- IsRenoCoexistenceProbeTime counts segments (section 5.3.3.8.2), and the max filter has two slots (section 5.5.3)
- the state to return to after spurious losses is saved at the first loss of an episode, not again by its further ones
- a precautionary probe ends when the bound has no room for another segment, as seen before the ACK that ends it
- a bandwidth that is not known yet changes no pacing rate

ECN: the draft has no response of its own, and where ECN is agreed "MUST treat any CE marks as congestion" (section
3.7). Here a mark is a loss in its round, and ends a probe for bandwidth.

Random numbers (PickProbeWait) are drawn from the host's generator.
"""

from collections import deque
from enum import Enum
from math import inf
from typing import Final

from common.options import NoOptions
from common.units import MS, SECOND
from hosts.tcp.delivery import DeliveryRate, RateSample
from hosts.tcp.growth import Growth, GrowthPlugin
from hosts.tcp.recovery.transmissions import Transmission
from hosts.tcp.send_state import INFINITE, SendState

#: section 2.5
STARTUP_PACING_GAIN: Final = 2.77
DRAIN_PACING_GAIN: Final = 0.5
PACING_MARGIN_PERCENT: Final = 1
#: section 2.6
DEFAULT_CWND_GAIN: Final = 2.0
#: section 5.3.3.5
PROBE_UP_CWND_GAIN: Final = 2.25
#: section 2.8
LOSS_THRESH: Final = 0.02
BETA: Final = 0.7
HEADROOM: Final = 0.15
MIN_PIPE_SEGMENTS: Final = 4
#: section 2.12, rounds
EXTRA_ACKED_FILTER_LEN: Final = 10
#: section 5.3.1.3: discontiguous ranges lost in a round
STARTUP_FULL_LOSS_COUNT: Final = 6
#: section 5.3.1.2
FULL_BW_GROWTH: Final = 1.25
FULL_BW_ROUNDS: Final = 3
#: section 5.3.2
DRAIN_ROUNDS: Final = 3
#: sections 2.16.1 and 2.16.2
MIN_RTT_FILTER_LEN_NS: Final = 10 * SECOND
PROBE_RTT_INTERVAL_NS: Final = 5 * SECOND
PROBE_RTT_DURATION_NS: Final = 200 * MS
PROBE_RTT_CWND_GAIN: Final = 0.5
#: section 5.3.3.8.3: the rounds and the least time between probes
RENO_ROUNDS: Final = 63
PROBE_WAIT_NS: Final = 2 * SECOND
PROBE_WAIT_RANGE_NS: Final = 1 * SECOND
#: section 5.6.3
MOST_QUANTUM: Final = 64 * 1024
QUANTA_IN_FLIGHT: Final = 3
#: section 5.3.3.9: doublings of the growth of inflight_longterm
_MOST_ROUNDS_UP: Final = 30


class State(Enum):
    """BBR.state (section 5.1.1)."""

    STARTUP = "Startup"
    DRAIN = "Drain"
    PROBE_BW_DOWN = "ProbeBW_DOWN"
    PROBE_BW_CRUISE = "ProbeBW_CRUISE"
    PROBE_BW_REFILL = "ProbeBW_REFILL"
    PROBE_BW_UP = "ProbeBW_UP"
    PROBE_RTT = "ProbeRTT"


class AckPhase(Enum):
    """BBR.ack_phase (section 2.14): what the present ACKs tell about a probe for bandwidth."""

    #: nothing
    INIT = 0
    #: the pipe is being filled at the estimated bandwidth
    REFILLING = 1
    #: the probe has begun, its ACKs are to come
    PROBE_STARTING = 2
    #: they come
    PROBE_FEEDBACK = 3
    #: the probe has ended, and they still come
    PROBE_STOPPING = 4


_STARTUP: Final = State.STARTUP
_DRAIN: Final = State.DRAIN
_DOWN: Final = State.PROBE_BW_DOWN
_CRUISE: Final = State.PROBE_BW_CRUISE
_REFILL: Final = State.PROBE_BW_REFILL
_UP: Final = State.PROBE_BW_UP
_PROBE_RTT: Final = State.PROBE_RTT
_PROBE_BW: Final = frozenset({_DOWN, _CRUISE, _REFILL, _UP})

#: section 5.6.1, the table
PACING_GAINS: Final = {
    _STARTUP: STARTUP_PACING_GAIN, _DRAIN: DRAIN_PACING_GAIN,
    _DOWN: 0.9, _CRUISE: 1.0, _REFILL: 1.0, _UP: 1.25, _PROBE_RTT: 1.0,
}  # fmt: skip


class MaxFilter:
    """The largest value of the last so many rounds."""

    def __init__(self) -> None:
        #: rounds and values: each value is below the one before it
        self._values: deque[tuple[int, float]] = deque()

    def update(self, value: float, time: int, window_length: int) -> float:
        """Take a value; return the largest of the last `window_length` rounds, this one among them."""
        values = self._values
        while values and values[-1][1] <= value:
            values.pop()
        values.append((time, value))
        while values[0][0] <= time - window_length:
            values.popleft()
        return values[0][1]


class Bbr3(Growth):
    """BBRv3's model of one connection's path, and its three controls: pacing rate, send quantum, cwnd."""

    def __init__(self, sender: SendState, options: NoOptions) -> None:
        super().__init__(sender)
        self._rng = sender.rng
        #: the time of the latest event
        self._now = 0
        self._has_begun = False
        self._rs = RateSample()
        self._initial_cwnd = 0
        # section 5.2.1, OnInit, in its order
        self.max_bw = 0.0
        #: the max filter's slots: this cycle and the one before
        self._bw_now = self._bw_before = 0.0
        self.cycle_count = 0
        self.min_rtt_ns = INFINITE
        self.min_rtt_stamp = 0
        self.probe_rtt_min_delay_ns = INFINITE
        self.probe_rtt_min_stamp = 0
        self.probe_rtt_expired = False
        self.probe_rtt_done_stamp = 0
        self.probe_rtt_round_done = False
        self.prior_cwnd = 0
        self.undo_state: State | None = None
        self.undo_bw_shortterm = self.undo_inflight_shortterm = self.undo_inflight_longterm = 0.0
        self.idle_restart = False
        self.extra_acked = 0.0
        self.extra_acked_interval_start = 0
        self.extra_acked_delivered = 0
        self._extra_acked_filter = MaxFilter()
        self.full_bw_reached = False
        self.inflight_longterm = inf
        self.probe_up_acked_per_inc = inf
        self.bw_probe_up_acked = 0
        self.bw_probe_up_rounds = 0
        self.rounds_since_probe_up = 0
        self.is_bw_probe_sample = False
        self.prev_probe_too_high = False
        self.prev_probe_precautionary = False
        self.ack_phase = AckPhase.INIT
        self.cycle_stamp = 0
        self.bw_probe_wait_ns = 0
        # ResetCongestionSignals
        self.is_loss_in_round = False
        self.bw_latest = 0.0
        self.inflight_latest = 0
        self.loss_round_delivered = 0
        self.loss_round_start = False
        #: discontiguous ranges lost in this round, and the end of the latest (section 5.3.1.3)
        self._losses_in_round = 0
        self._lost_end = -1
        # ResetShortTermModel
        self.bw_shortterm = self.inflight_shortterm = inf
        # InitRoundCounting
        self.next_round_delivered = 0
        self.round_start = False
        self.round_count = 0
        # ResetFullBW
        self.full_bw = 0.0
        self.full_bw_count = 0
        self.full_bw_now = False
        self.bw = 0.0
        self.bdp = 0.0
        self.max_inflight = 0.0
        #: C.pacing_rate
        self.pacing_rate = 0.0
        # EnterStartup
        self.state = _STARTUP
        self.pacing_gain = STARTUP_PACING_GAIN
        self.cwnd_gain = DEFAULT_CWND_GAIN
        self.drain_start_round = 0
        #: whether the last ACK was within a loss recovery, the round in which fast recovery began (-1: it is over), and
        #: the octet that ends what a timeout has begun
        self._was_recovering = False
        self._recovery_round = -1
        #: whether the state before this loss episode is saved
        self._has_saved = False
        self._rto_recover = -1

    # -- events ----------------------------------------------------------------------------------------------

    def start(self, cwnd: int, ssthresh: int) -> None:
        """Begin with a window. `ssthresh` is not used: there is no threshold."""
        self.cwnd = self._initial_cwnd = cwnd
        self.min_rtt_ns = self._sender.rto.srtt_ns or INFINITE
        self._init_pacing_rate()

    def handle_ack(self, acked: int, now: int) -> None:
        """Do nothing: `handle_sample` sets the window."""

    def hold(self, cwnd: int) -> None:
        """Do nothing: the model alone sets the window, in loss recovery, too (section 5.6.4.4)."""

    def threshold(self, flight: int) -> int:
        """Return the window: a loss has no threshold."""
        return self.cwnd

    def handle_loss(self, flight: int) -> int:
        """OnEnterFastRecovery (section 5.6.4.4): the state was saved at the first loss."""
        self._recovery_round = self.round_count
        self._note_loss()
        return self.cwnd

    def handle_mark(self, flight: int) -> int:
        """Take a CE mark as congestion (section 3.7): as a loss of this round, and as too much in flight."""
        self._note_loss()
        if self.is_bw_probe_sample:
            self._handle_inflight_too_high(self._delivery.inflight, False)
        elif not self.full_bw_reached:
            self._end_startup()
        return self.cwnd

    def handle_timeout(self, flight: int, cwnd: int, *, first: bool, recovering: bool) -> None:
        """OnEnterRTO (section 5.6.4.4): the window is one segment."""
        self._save_cwnd()
        self._save_state_upon_loss()
        self._rto_recover = self._sender.max
        self._was_recovering = True
        self.cwnd = cwnd

    def restore(self, cwnd: int, ssthresh: int) -> None:
        """HandleSpuriousLossDetection (section 5.5.11.2)."""
        self._restore_cwnd()
        self.is_loss_in_round = False
        self._reset_full_bw()
        self.bw_shortterm = max(self.bw_shortterm, self.undo_bw_shortterm)
        self.inflight_shortterm = max(self.inflight_shortterm, self.undo_inflight_shortterm)
        self.inflight_longterm = max(self.inflight_longterm, self.undo_inflight_longterm)
        if self.undo_state is _STARTUP and self.state is not _STARTUP:
            self.full_bw_reached = False
            if self.state is not _PROBE_RTT:
                self._enter(_STARTUP)
        elif self.undo_state is _UP and self.state is not _UP and self.state is not _PROBE_RTT:
            self._start_probe_bw_refill()
        self.undo_state = None
        self._rto_recover = -1

    def handle_transmit(self, now: int) -> None:
        """OnTransmit (section 5.2.2): HandleRestartFromIdle (section 5.4.1)."""
        self._now = now
        if not self._has_begun:
            self._has_begun = True
            self.min_rtt_stamp = self.probe_rtt_min_stamp = self.extra_acked_interval_start = now
        delivery = self._delivery
        if not delivery.inflight and delivery.app_limited:
            self.idle_restart = True
            self.extra_acked_interval_start = now
            if self.state in _PROBE_BW:
                self._set_pacing_rate_with_gain(1.0)
            elif self.state is _PROBE_RTT:
                self._check_probe_rtt_done()

    def handle_sample(self, sample: RateSample, now: int) -> None:
        """UpdateOnACK (section 5.2.3)."""
        self._now = now
        self._rs = sample
        if self._sender.rto.srtt_ns is not None and self.min_rtt_ns == INFINITE and not self.max_bw:
            # section 5.6.2: after the first round-trip time
            self._init_pacing_rate()
        self._follow_recovery()
        # UpdateModelAndState
        self._update_latest_delivery_signals()
        self._update_congestion_signals()
        self._update_ack_aggregation()
        self._check_full_bw_reached()
        self._check_startup_done()
        self._check_drain_done()
        self._update_probe_bw_cycle_phase()
        self._update_min_rtt()
        self._check_probe_rtt()
        self._advance_latest_delivery_signals()
        self._bound_bw_for_model()
        # UpdateControlParameters
        self._set_pacing_rate_with_gain(self.pacing_gain)
        self._set_send_quantum()
        self._set_cwnd()

    def handle_lost(self, lost: Transmission, now: int) -> None:
        """HandleLostPacket (section 5.5.10.2)."""
        self._now = now
        if lost.start != self._lost_end:
            self._losses_in_round += 1
        self._lost_end = lost.end
        self._note_loss()
        packet = lost.packet
        if not self.is_bw_probe_sample or packet is None:
            return
        lost_octets = self._delivery.lost - packet.lost
        if self._is_inflight_too_high(lost_octets, packet.tx_in_flight):
            # InflightAtLoss: where the losses have crossed the threshold, within this segment
            size = lost.end - lost.start
            inflight_prev, lost_prev = packet.tx_in_flight - size, lost_octets - size
            lost_prefix = (LOSS_THRESH * inflight_prev - lost_prev) / (1 - LOSS_THRESH)
            self._handle_inflight_too_high(inflight_prev + lost_prefix, packet.is_app_limited)

    @property
    def _delivery(self) -> DeliveryRate:
        delivery = self._sender.delivery
        assert delivery is not None, "the plugin samples"
        return delivery

    # -- loss recovery: section 5.6.4.4 ----------------------------------------------------------------------

    def _in_loss_recovery(self) -> bool:
        sender = self._sender
        return sender.recovery.active or sender.una < self._rto_recover

    def _follow_recovery(self) -> None:
        """Restore the window when a recovery has ended."""
        recovering = self._in_loss_recovery()
        if not self._sender.recovery.active:
            self._recovery_round = -1
        if self._was_recovering and not recovering:
            self._restore_cwnd()
        if not recovering:
            self._has_saved = False
        self._was_recovering = recovering

    def _save_cwnd(self) -> None:
        if not self._in_loss_recovery() and self.state is not _PROBE_RTT:
            self.prior_cwnd = self.cwnd
        else:
            self.prior_cwnd = max(self.prior_cwnd, self.cwnd)

    def _restore_cwnd(self) -> None:
        self.cwnd = max(self.cwnd, self.prior_cwnd)

    def _save_state_upon_loss(self) -> None:
        """Section 5.5.11.1."""
        self._has_saved = True
        self._save_cwnd()
        self.undo_state = None
        self.undo_bw_shortterm = self.bw_shortterm
        self.undo_inflight_shortterm = self.inflight_shortterm
        self.undo_inflight_longterm = self.inflight_longterm

    # -- Startup and Drain: sections 5.3.1 and 5.3.2 ---------------------------------------------------------

    def _enter(self, state: State) -> None:
        """Enter a state with its gains (section 5.6.1)."""
        self.state = state
        self.pacing_gain = PACING_GAINS[state]
        self.cwnd_gain = PROBE_UP_CWND_GAIN if state is _UP else DEFAULT_CWND_GAIN

    def _check_startup_done(self) -> None:
        self._check_startup_high_loss()
        if self.state is _STARTUP and self.full_bw_reached:
            # EnterDrain
            self._enter(_DRAIN)
            self.drain_start_round = self.round_count

    def _check_startup_high_loss(self) -> None:
        """Section 5.3.1.3."""
        if self.full_bw_reached or not self.loss_round_start:
            return
        rs = self._rs
        if self._sender.sack:
            if not 0 <= self._recovery_round < self.round_count:
                return
            if self._losses_in_round < STARTUP_FULL_LOSS_COUNT:
                return
        elif self._recovery_round < 0:
            return
        if self._is_inflight_too_high(rs.lost, rs.tx_in_flight):
            self._end_startup()

    def _end_startup(self) -> None:
        self.undo_state = _STARTUP
        self.full_bw_reached = self.full_bw_now = True
        self.inflight_longterm = max(self._bdp_multiple(self.bw, 1.0), self.inflight_latest)

    def _reset_full_bw(self) -> None:
        self.full_bw = 0.0
        self.full_bw_count = 0
        self.full_bw_now = False

    def _check_full_bw_reached(self) -> None:
        """Section 5.3.1.2."""
        rs = self._rs
        if self.full_bw_now or not self.round_start or rs.is_app_limited:
            return
        if rs.delivery_rate >= self.full_bw * FULL_BW_GROWTH:
            self._reset_full_bw()
            self.full_bw = rs.delivery_rate
            return
        self.full_bw_count += 1
        self.full_bw_now = self.full_bw_count >= FULL_BW_ROUNDS
        if self.full_bw_now:
            self.full_bw_reached = True

    def _check_drain_done(self) -> None:
        if self.state is _DRAIN and (
            self._delivery.inflight <= self._inflight(self.bw, 1.0)
            or self.round_count > self.drain_start_round + DRAIN_ROUNDS
        ):
            self._start_probe_bw_down()

    # -- ProbeBW: section 5.3.3.9 ----------------------------------------------------------------------------

    def _start_probe_bw_down(self) -> None:
        self._reset_congestion_signals()
        self.probe_up_acked_per_inc = inf
        self._pick_probe_wait()
        self.cycle_stamp = self._now
        self.ack_phase = AckPhase.PROBE_STOPPING
        self._start_round()
        self._enter(_DOWN)

    def _start_probe_bw_refill(self) -> None:
        self._reset_short_term_model()
        self.bw_probe_up_rounds = 0
        self.bw_probe_up_acked = 0
        self.prev_probe_precautionary = False
        self.ack_phase = AckPhase.REFILLING
        self._start_round()
        self._enter(_REFILL)

    def _start_probe_bw_up(self) -> None:
        self.ack_phase = AckPhase.PROBE_STARTING
        self._start_round()
        self._reset_full_bw()
        self.full_bw = self._rs.delivery_rate
        self._enter(_UP)
        self._raise_inflight_longterm_slope()

    def _update_probe_bw_cycle_phase(self) -> None:
        if not self.full_bw_reached or self._adapt_long_term_model():
            return
        state = self.state
        if state is _DOWN:
            if not self._is_time_to_probe_bw() and self._is_time_to_cruise():
                self._enter(_CRUISE)
        elif state is _CRUISE:
            self._is_time_to_probe_bw()
        elif state is _REFILL:
            if self.round_start:
                self.is_bw_probe_sample = True
                self._start_probe_bw_up()
        elif state is _UP and self._is_time_to_go_down():
            self.prev_probe_too_high = False
            self._start_probe_bw_down()

    def _is_time_to_cruise(self) -> bool:
        inflight = self._delivery.inflight
        return inflight <= self._inflight_with_headroom() and inflight <= self._inflight(self.max_bw, 1.0)

    def _is_time_to_go_down(self) -> bool:
        delivery = self._delivery
        reached = delivery.inflight + self._rs.newly_acked + self._sender.full_smss
        if self.prev_probe_too_high and reached > self.inflight_longterm:
            # section 5.3.3.6, Deceleration: what this ACK tells of has just left, and whole segments fill a bound
            self.prev_probe_precautionary = True
            return True
        if delivery.is_cwnd_limited and self.cwnd >= self.inflight_longterm:
            self._reset_full_bw()
            self.full_bw = self._rs.delivery_rate
        elif self.full_bw_now:
            return True
        return False

    def _is_time_to_probe_bw(self) -> bool:
        """Section 5.3.3.8.3."""
        # IsRenoCoexistenceProbeTime: the estimated BDP in segments is a number of rounds
        reno_rounds = self._target_inflight() / self._sender.full_smss
        if self._now > self.cycle_stamp + self.bw_probe_wait_ns or self.rounds_since_probe_up >= min(
            reno_rounds, RENO_ROUNDS
        ):
            self._start_probe_bw_refill()
            return True
        return False

    def _pick_probe_wait(self) -> None:
        self.rounds_since_probe_up = self._rng.randint(0, 1)
        self.bw_probe_wait_ns = PROBE_WAIT_NS + round(self._rng.random() * PROBE_WAIT_RANGE_NS)

    def _target_inflight(self) -> float:
        return min(self.bdp, float(self.cwnd))

    def _inflight_with_headroom(self) -> float:
        if self.inflight_longterm == inf:
            return inf
        headroom = max(float(self._sender.full_smss), HEADROOM * self.inflight_longterm)
        return max(self.inflight_longterm - headroom, float(self._min_pipe_cwnd))

    def _raise_inflight_longterm_slope(self) -> None:
        growth_this_round = 1 << self.bw_probe_up_rounds
        self.bw_probe_up_rounds = min(self.bw_probe_up_rounds + 1, _MOST_ROUNDS_UP)
        self.probe_up_acked_per_inc = max(self.cwnd / growth_this_round, float(self._sender.full_smss))

    def _probe_inflight_longterm_upward(self) -> None:
        if not self._delivery.is_cwnd_limited or self.cwnd < self.inflight_longterm:
            return
        self.bw_probe_up_acked += self._rs.newly_acked
        if self.bw_probe_up_acked >= self.probe_up_acked_per_inc:
            per_inc = int(self.probe_up_acked_per_inc)
            delta = self.bw_probe_up_acked // per_inc
            self.bw_probe_up_acked -= delta * per_inc
            self.inflight_longterm += delta * self._sender.full_smss
        if self.round_start:
            self._raise_inflight_longterm_slope()

    def _adapt_long_term_model(self) -> bool:
        """Follow the ACKs of a probe; return whether a state has been entered."""
        rs = self._rs
        if self.ack_phase is AckPhase.PROBE_STARTING and self.round_start:
            self.ack_phase = AckPhase.PROBE_FEEDBACK
        if self.ack_phase is AckPhase.PROBE_STOPPING and self.round_start:
            self.is_bw_probe_sample = False
            self.ack_phase = AckPhase.INIT
            if self.state in _PROBE_BW:
                if not rs.is_app_limited:
                    self._advance_max_bw_filter()
                if self.prev_probe_precautionary and not self.prev_probe_too_high:
                    # section 5.3.3.6, Acceleration
                    self._start_probe_bw_refill()
                    return True
        if not self._is_inflight_too_high(rs.lost, rs.tx_in_flight) and self.inflight_longterm != inf:
            if rs.tx_in_flight > self.inflight_longterm:
                self.inflight_longterm = float(rs.tx_in_flight)
            if self.state is _UP:
                self._probe_inflight_longterm_upward()
        return False

    # -- ProbeRTT: section 5.3.4.3 ---------------------------------------------------------------------------

    def _update_min_rtt(self) -> None:
        now, rtt_ns = self._now, self._rs.rtt_ns
        self.probe_rtt_expired = now > self.probe_rtt_min_stamp + PROBE_RTT_INTERVAL_NS
        if rtt_ns >= 0 and (rtt_ns < self.probe_rtt_min_delay_ns or self.probe_rtt_expired):
            self.probe_rtt_min_delay_ns = rtt_ns
            self.probe_rtt_min_stamp = now
        min_rtt_expired = now > self.min_rtt_stamp + MIN_RTT_FILTER_LEN_NS
        if self.probe_rtt_min_delay_ns < self.min_rtt_ns or min_rtt_expired:
            self.min_rtt_ns = self.probe_rtt_min_delay_ns
            self.min_rtt_stamp = self.probe_rtt_min_stamp

    def _check_probe_rtt(self) -> None:
        if self.state is not _PROBE_RTT and self.probe_rtt_expired and not self.idle_restart:
            # EnterProbeRTT
            self._enter(_PROBE_RTT)
            self.cwnd_gain = PROBE_RTT_CWND_GAIN
            self._save_cwnd()
            self.probe_rtt_done_stamp = 0
            self.ack_phase = AckPhase.PROBE_STOPPING
            self._start_round()
        if self.state is _PROBE_RTT:
            self._handle_probe_rtt()
        if self._rs.delivered > 0:
            self.idle_restart = False

    def _handle_probe_rtt(self) -> None:
        delivery = self._delivery
        # its samples are low
        delivery.mark_app_limited()
        if not self.probe_rtt_done_stamp:
            if delivery.inflight <= self._probe_rtt_cwnd():
                self.probe_rtt_done_stamp = self._now + PROBE_RTT_DURATION_NS
                self.probe_rtt_round_done = False
                self._start_round()
        else:
            if self.round_start:
                self.probe_rtt_round_done = True
            if self.probe_rtt_round_done:
                self._check_probe_rtt_done()

    def _check_probe_rtt_done(self) -> None:
        if self.probe_rtt_done_stamp and self._now > self.probe_rtt_done_stamp:
            self.probe_rtt_min_stamp = self._now
            self._restore_cwnd()
            self._exit_probe_rtt()

    def _exit_probe_rtt(self) -> None:
        """Section 5.3.4.4."""
        self._reset_short_term_model()
        if self.full_bw_reached:
            self._start_probe_bw_down()
            self._enter(_CRUISE)
        else:
            self._enter(_STARTUP)

    # -- the model: section 5.5 ------------------------------------------------------------------------------

    def _start_round(self) -> None:
        self.next_round_delivered = self._delivery.delivered

    def _update_max_bw(self) -> None:
        """Sections 5.5.1 and 5.5.5."""
        rs = self._rs
        # UpdateRound
        if rs.prior_delivered >= self.next_round_delivered:
            self._start_round()
            self.round_count += 1
            self.rounds_since_probe_up += 1
            self.round_start = True
        else:
            self.round_start = False
        rate = rs.delivery_rate
        if rate > 0 and (rate >= self.max_bw or not rs.is_app_limited):
            if rate > self._bw_now:
                self._bw_now = rate
            self.max_bw = max(self._bw_now, self._bw_before)

    def _advance_max_bw_filter(self) -> None:
        """Section 5.5.6."""
        self.cycle_count += 1
        self._bw_before, self._bw_now = self._bw_now, 0.0

    def _update_ack_aggregation(self) -> None:
        """Section 5.5.9."""
        now, rs = self._now, self._rs
        expected_delivered = self.bw * (now - self.extra_acked_interval_start) / SECOND
        if self.extra_acked_delivered <= expected_delivered:
            self.extra_acked_delivered = 0
            self.extra_acked_interval_start = now
            expected_delivered = 0.0
        self.extra_acked_delivered += rs.newly_acked
        extra = min(self.extra_acked_delivered - expected_delivered, float(self.cwnd))
        length = EXTRA_ACKED_FILTER_LEN if self.full_bw_reached else 1
        self.extra_acked = self._extra_acked_filter.update(extra, self.round_count, length)

    # -- losses: section 5.5.10 ------------------------------------------------------------------------------

    def _is_inflight_too_high(self, lost: int, tx_in_flight: int) -> bool:
        return lost > tx_in_flight * LOSS_THRESH or (lost > 0 and not self._sender.sack)

    def _handle_inflight_too_high(self, tx_in_flight: float, is_app_limited: bool) -> None:
        self.prev_probe_too_high = True
        self.is_bw_probe_sample = False
        if not is_app_limited:
            self.inflight_longterm = max(tx_in_flight, self._target_inflight() * BETA)
        if self.state is _UP:
            self.undo_state = _UP
            self._start_probe_bw_down()

    def _note_loss(self) -> None:
        if not self.is_loss_in_round:
            self.loss_round_delivered = self._delivery.delivered
            if not self._has_saved:
                self._save_state_upon_loss()
        self.is_loss_in_round = True

    def _update_latest_delivery_signals(self) -> None:
        """Section 5.5.10.3."""
        rs = self._rs
        self.loss_round_start = False
        self.bw_latest = max(self.bw_latest, rs.delivery_rate)
        self.inflight_latest = max(self.inflight_latest, rs.delivered)
        if rs.prior_delivered >= self.loss_round_delivered:
            self.loss_round_delivered = self._delivery.delivered
            self.loss_round_start = True

    def _advance_latest_delivery_signals(self) -> None:
        if self.loss_round_start:
            self.bw_latest = self._rs.delivery_rate
            self.inflight_latest = self._rs.delivered
            self._losses_in_round = 0
            self._lost_end = -1

    def _reset_congestion_signals(self) -> None:
        self.is_loss_in_round = False
        self.bw_latest = 0.0
        self.inflight_latest = 0

    def _update_congestion_signals(self) -> None:
        self._update_max_bw()
        if self.loss_round_start:
            self._adapt_lower_bounds_from_congestion()
            self.is_loss_in_round = False

    def _adapt_lower_bounds_from_congestion(self) -> None:
        # IsProbingBW
        if self.state is _STARTUP or self.state is _REFILL or self.state is _UP or not self.is_loss_in_round:
            return
        # InitLowerBounds
        if self.bw_shortterm == inf:
            self.bw_shortterm = self.max_bw
        if self.inflight_shortterm == inf:
            self.inflight_shortterm = float(self.cwnd)
        # LossLowerBounds
        self.bw_shortterm = max(self.bw_latest, BETA * self.bw_shortterm)
        self.inflight_shortterm = max(float(self.inflight_latest), BETA * self.inflight_shortterm)

    def _reset_short_term_model(self) -> None:
        self.bw_shortterm = self.inflight_shortterm = inf

    def _bound_bw_for_model(self) -> None:
        self.bw = min(self.max_bw, self.bw_shortterm)

    # -- controls: section 5.6 -------------------------------------------------------------------------------

    @property
    def _min_pipe_cwnd(self) -> int:
        return MIN_PIPE_SEGMENTS * self._sender.full_smss

    def _init_pacing_rate(self) -> None:
        """Section 5.6.2."""
        rtt_ns = self._sender.rto.srtt_ns or 1 * MS
        self._pace(STARTUP_PACING_GAIN * self._initial_cwnd * SECOND / rtt_ns)
        self._set_send_quantum()

    def _set_pacing_rate_with_gain(self, pacing_gain: float) -> None:
        rate = pacing_gain * self.bw * (100 - PACING_MARGIN_PERCENT) / 100
        if rate > 0 and (self.full_bw_reached or rate > self.pacing_rate):
            self._pace(rate)

    def _pace(self, rate: float) -> None:
        self.pacing_rate = rate
        self.pacing_rate_bps = max(int(8 * rate), 1)

    def _set_send_quantum(self) -> None:
        """Section 5.6.3."""
        quantum = min(int(self.pacing_rate * MS / SECOND), MOST_QUANTUM)
        self.send_quantum = max(quantum, 2 * self._sender.full_smss)

    def _bdp_multiple(self, bw: float, gain: float) -> float:
        """Section 5.6.4.2."""
        if self.min_rtt_ns == INFINITE:
            return float(self._initial_cwnd)
        self.bdp = bw * self.min_rtt_ns / SECOND
        return gain * self.bdp

    def _quantization_budget(self, inflight_cap: float) -> float:
        # UpdateOffloadBudget (section 5.5.8.1)
        inflight_cap = max(inflight_cap, float(QUANTA_IN_FLIGHT * self.send_quantum), float(self._min_pipe_cwnd))
        return inflight_cap + 2 * self._sender.full_smss if self.state is _UP else inflight_cap

    def _inflight(self, bw: float, gain: float) -> float:
        return self._quantization_budget(self._bdp_multiple(bw, gain))

    def _probe_rtt_cwnd(self) -> float:
        """Section 5.6.4.5."""
        return max(self._bdp_multiple(self.bw, PROBE_RTT_CWND_GAIN), float(self._min_pipe_cwnd))

    def _set_cwnd(self) -> None:
        """Sections 5.6.4.6, 5.6.4.5 and 5.6.4.7."""
        newly_acked = self._rs.newly_acked
        # UpdateMaxInflight
        inflight_cap = self._bdp_multiple(self.bw, self.cwnd_gain) + self.extra_acked
        self.max_inflight = self._quantization_budget(inflight_cap)
        cwnd = float(self.cwnd)
        if self.full_bw_reached:
            cwnd = min(cwnd + newly_acked, self.max_inflight)
        elif cwnd < self.max_inflight or self._delivery.delivered < self._initial_cwnd:
            cwnd += newly_acked
        cwnd = max(cwnd, float(self._min_pipe_cwnd))
        if self.state is _PROBE_RTT:
            cwnd = min(cwnd, self._probe_rtt_cwnd())
        # BoundCwndForModel
        cap = inf
        if self.state is _DOWN or self.state is _REFILL or self.state is _UP:
            cap = self.inflight_longterm
        elif self.state is _PROBE_RTT or self.state is _CRUISE:
            cap = self._inflight_with_headroom()
        cap = max(min(cap, self.inflight_shortterm), float(self._min_pipe_cwnd))
        self.cwnd = int(min(cwnd, cap))


GROWTH = GrowthPlugin(
    name="bbr3",
    summary="BBRv3 (draft-ietf-ccwg-bbr-06)",
    make=Bbr3,
    samples=True,
)
