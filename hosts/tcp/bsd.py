"""The timers of 4.4BSD: everything is counted in ticks of a clock of 500 ms.

Read first: Wright and Stevens, TCP/IP Illustrated, volume 2, chapter 25; COMPARISON section 4 (its hosts ran BSD/OS).

Rules: the slow clock ticks every `tick_ns`. A timer of n ticks expires at the n-th tick from now, so after n - 1 to n
times `tick_ns`. A round trip lasts as many ticks as fall into it, zero on most paths. SRTT is kept in eighths of a
tick, the variation in quarters, both whole numbers; their sum says when to send again: with round trips below a tick
it settles at three. Six seconds before the first sample, 24 s after a first timeout without one, as the initial
variation has it. `clock_phase_ns` says when the clocks tick; the fast one, every 200 ms, is the receiver's (`after`).
"""

from typing import Final

from hosts.tcp.options import TimerOptions
from hosts.tcp.rto import RtoEstimator

#: SRTT's and the variation's fractions, in bits
_SRTT_SHIFT: Final = 3
_RTTVAR_SHIFT: Final = 2
#: doublings of the timeout: 64 times at most
_MAX_DOUBLINGS: Final = 6
#: after so many timeouts in a row the smoothed round-trip time is no longer believed
_BELIEVED_TIMEOUTS: Final = 3
#: no sample yet: the variation of a timeout of 3 s, as in 4.4BSD
_FIRST_RTTVAR_NS: Final = 12_000_000_000


def ticks_between(start: int, end: int, tick_ns: int, phase_ns: int) -> int:
    """Return how many ticks of a clock come after `start` and not after `end`."""
    return (end - phase_ns) // tick_ns - (start - phase_ns) // tick_ns


def after_ticks(now: int, ticks: int, tick_ns: int, phase_ns: int) -> int:
    """Return when the `ticks`-th tick from now comes."""
    return ((now - phase_ns) // tick_ns + ticks) * tick_ns + phase_ns


class BsdRto(RtoEstimator):
    """The retransmission timeout in ticks."""

    def __init__(self, options: TimerOptions) -> None:
        super().__init__(options)
        self._tick_ns = tick = options.tick_ns
        self._phase_ns = options.clock_phase_ns
        self._min_ticks = self._ticks_of(options.min_rto_ns)
        self._max_ticks = self._ticks_of(options.max_rto_ns)
        #: eighths of a tick; 0: no sample
        self._srtt = 0
        #: quarters of a tick
        self._variation = _FIRST_RTTVAR_NS // tick
        #: timeouts since the last sample
        self._timeouts = 0
        #: the timeout in force
        self._ticks = self._ticks_of(options.initial_rto_ns)

    def _ticks_of(self, ns: int) -> int:
        return max(1, -(-ns // self._tick_ns))

    @property
    def rto_ns(self) -> int:
        """The timeout in force, in whole ticks, backoff included."""
        return self._ticks * self._tick_ns

    def handle_acked(self, sent_at: int, now: int) -> None:
        elapsed = ticks_between(sent_at, now, self._tick_ns, self._phase_ns)
        if self._srtt:
            deviation = elapsed - (self._srtt >> _SRTT_SHIFT)
            self._srtt = max(1, self._srtt + deviation)
            self._variation = max(1, self._variation + abs(deviation) - (self._variation >> _RTTVAR_SHIFT))
        else:
            # the first one counts one tick more: the one it was begun in
            self._srtt = (elapsed + 1) << _SRTT_SHIFT
            self._variation = (elapsed + 1) << (_RTTVAR_SHIFT - 1)
        self._timeouts = 0
        self._set()
        self.srtt_ns = self._srtt * self._tick_ns >> _SRTT_SHIFT
        self.rttvar_ns = self._variation * self._tick_ns >> _RTTVAR_SHIFT

    def handle_sample(self, rtt_ns: int) -> None:
        """Refuse: round-trip times in ticks come from no timestamp."""
        raise TypeError("a clock of ticks takes the times of segments, not round-trip times")

    def back_off(self) -> None:
        self._timeouts += 1
        self._set()
        if self._timeouts > _BELIEVED_TIMEOUTS:
            self._variation += self._srtt >> _SRTT_SHIFT
            self._srtt = 0

    def restart(self, rto_ns: int) -> None:
        self._timeouts = 0
        self._ticks = self._ticks_of(rto_ns)

    def _set(self) -> None:
        ticks = (self._srtt >> _SRTT_SHIFT) + self._variation << min(self._timeouts, _MAX_DOUBLINGS)
        self._ticks = min(max(ticks, self._min_ticks), self._max_ticks)

    def expiry(self, now: int) -> int:
        return after_ticks(now, self._ticks, self._tick_ns, self._phase_ns)

    def after(self, now: int, ns: int) -> int:
        """When a timer of `ns` or the ticks nearest above it, started now, expires."""
        return after_ticks(now, self._ticks_of(ns), self._tick_ns, self._phase_ns)
