"""The times of one end: how long a round trip and a round take, and the rounds that the budget leaves.

A *round trip* is the shortest of late, from the radio's taking a long frame to its acknowledgement. A *round* takes
until the fate of a frame is known, usually longer: a lost frame shows in the acknowledgement of the next that comes.
"""

from typing import Final

from common.units import MS
from linklayer.adaptive.plan import MAX_ROUNDS
from linklayer.rtt import RttEstimator

_NEVER: Final = 1 << 61
#: until a round trip is known packets have so much time
_UNKNOWN_BUDGET_NS: Final = 3000 * MS
#: the shortest round trip is looked for in so many ns, and in as many before
_STRETCH_NS: Final = 10_000 * MS


class Budget:
    """`fixed_ns` or, where that is 0, `round_trips` of the link."""

    def __init__(self, round_trips: float, fixed_ns: int, now: int) -> None:
        self._round_trips = round_trips
        self._fixed_ns = fixed_ns
        self._rtt = RttEstimator()
        #: the shortest round trips of this stretch of time and of the one before
        self._shortest = self._shortest_before = _NEVER
        self._stretch_until = now + _STRETCH_NS
        #: octets of about the longest packet that they were measured with
        self._longest = 0
        #: from sending a frame until its fate is known, smoothed, and its variation
        self._fate_ns = self._fate_variation_ns = 0

    @property
    def round_trip_ns(self) -> int:
        """The round trip; 0: unknown."""
        shortest = min(self._shortest, self._shortest_before)
        return 0 if shortest == _NEVER else shortest

    @property
    def budget_ns(self) -> int:
        """How long a packet may be under way; 0: unknown."""
        return self._fixed_ns or round(self._round_trips * self.round_trip_ns)

    @property
    def patience_ns(self) -> int:
        """How long the peer is to wait for a packet that no frame gives up: the last ones may be late."""
        return self.budget_ns + self.round_trip_ns or _UNKNOWN_BUDGET_NS

    @property
    def sending_ns(self) -> int:
        """How long after its first frame the last frame of a packet is of use.

        It arrives half a round trip later, a quarter of one beyond the budget: with less a round that just does not fit
        would be lost to all packets.
        """
        round_trip = self.round_trip_ns
        return self.budget_ns - round_trip // 4 if round_trip else _UNKNOWN_BUDGET_NS

    @property
    def round_ns(self) -> int:
        """How long a round takes; 0: unknown."""
        return self._fate_ns + self._fate_variation_ns

    @property
    def overdue_ns(self) -> int:
        """How long to wait for an acknowledgement."""
        return self._rtt.bound_ns

    def rounds_in(self, left_ns: int) -> int:
        """Return the rounds that can begin within so much time, one that begins at once included."""
        round_ns = self.round_ns
        rounds = 1 + left_ns // round_ns if round_ns else round(self._round_trips)
        return max(1, min(MAX_ROUNDS, rounds))

    def handle_round_trip(self, rtt_ns: int, nbytes: int, now: int) -> None:
        """Take the time between a frame and its own acknowledgement; its packet has `nbytes` octets."""
        self._rtt.handle_sample(rtt_ns)
        if nbytes > 2 * self._longest or now >= self._stretch_until + _STRETCH_NS:
            # short frames are there sooner: what they told is not the round trip of such a frame
            self._longest = nbytes
            self._shortest = self._shortest_before = _NEVER
            self._stretch_until = now + _STRETCH_NS
        elif 2 * nbytes < self._longest:
            return
        if now >= self._stretch_until:
            self._shortest_before, self._shortest = self._shortest, _NEVER
            self._stretch_until = now + _STRETCH_NS
        if rtt_ns < self._shortest:
            self._shortest = rtt_ns

    def handle_fate(self, after_ns: int) -> None:
        """Take the time between a frame and the knowledge of its fate.

        Before the round trip is known, and in an outage, that is how long nobody answered, and not how long a round is.
        """
        after_ns = min(after_ns, 2 * self.round_trip_ns)
        if not after_ns:
            return
        if not self._fate_ns:
            self._fate_ns = after_ns
        self._fate_variation_ns += (abs(after_ns - self._fate_ns) - self._fate_variation_ns) // 16
        self._fate_ns += (after_ns - self._fate_ns) // 16
