"""The session handshake: two incarnations of two stations agree on tags.

Rules: every frame but HELLO carries a *tag*, a number its receiver drew for this pair of incarnations and told the
sender in a HELLO (as SCTP's verification tag, RFC 9260 section 3.1; QUIC's connection id). A frame with another tag
is of another session and is refused. A session begins only when a HELLO echoes the offer made to its sender, so a
HELLO that was delayed from an earlier incarnation cannot end the present session: it echoes nothing fresh.

    A                                   B
    HELLO(a, offer 0, echo 0)   ->
                                <-      HELLO(b, offer p, echo 0)
    HELLO(a, offer q, echo p)   ->      established: sends with tag q
                                <-      HELLO(b, offer p, echo q, established)
    established: sends with tag p

A station repeats its HELLO until established; an established station answers every HELLO that does not say
`established`. A peer not heard for `dead_after_ns` is gone: the session ends and a new one is sought, which also
heals a link that one side believes in and the other does not; so a HELLO of a peer that still seeks does not count as
hearing it. One case heals at once: a peer that echoes the tag of the present session and offers another one has
forgotten its offer, and is made a new one.
"""

from enum import Enum
from random import Random
from typing import Final

from common.units import MS
from linklayer.slacp.config import SlacpConfig
from linklayer.slacp.frames import Hello

#: first repetition of an unanswered HELLO, doubling each time up to the second
HELLO_TIMER_NS: Final = 200 * MS
HELLO_TIMER_MAX_NS: Final = 2_000 * MS


class SessionState(Enum):
    """Whether the two stations have agreed."""

    SEEKING = "seeking"
    ESTABLISHED = "established"


class Session:
    """One station's view of the session.

    Call `handle_hello` per HELLO (True: a new session has begun), `heard` per other valid frame, `poll_hello` when
    the radio has room, `handle_deadline` at `next_deadline()` (True: the session has ended).
    """

    def __init__(self, config: SlacpConfig, rng: Random, first: int, now: int) -> None:
        self._dead_after_ns = config.dead_after_ns
        self._rng = rng
        #: where this station's numbers start, told to the peer
        self.first = first
        self._seek(now)

    def _seek(self, now: int) -> None:
        self.state = SessionState.SEEKING
        self._ident = self._draw()
        #: tag the peer puts on frames to us; 0: none
        self.rx_tag = 0
        #: tag we put on frames to the peer; 0: none
        self.tx_tag = 0
        #: incarnation of the peer: the established one, and the one being talked to
        self._peer = 0
        self._candidate = 0
        self._offer = 0
        self._offered_at = now
        self._echo = 0
        #: at least a round trip: from making the offer that the peer echoed until its echo came
        self.handshake_rtt_ns = 0
        #: where the peer's numbers start
        self.peer_first = 0
        #: whether `poll_hello` has one
        self.hello_due = True
        self._hello_interval = HELLO_TIMER_NS
        self._hello_at = now + self._hello_interval
        self._heard_at = now

    @property
    def established(self) -> bool:
        """Whether data may flow."""
        return self.state is SessionState.ESTABLISHED

    def heard(self, now: int) -> None:
        """Note a valid frame of the present session."""
        self._heard_at = now

    def handle_hello(self, hello: Hello, now: int) -> bool:
        """Take one step of the handshake; return whether a new session has begun with it."""
        if hello.ident in (0, self._ident):
            # no station has number 0; and this one has heard itself, by a reflection or on its own frequency
            return False
        if self.established and hello.ident == self._peer:
            return self._handle_hello_of_peer(hello, now)
        if hello.ident != self._candidate:
            self._make_offer(hello.ident, now)
        if hello.echo == self._offer and hello.offer:
            return self._begin(hello, now)
        self._echo = hello.offer
        self.hello_due = True
        return False

    def _handle_hello_of_peer(self, hello: Hello, now: int) -> bool:
        renewing = self._candidate == self._peer and self._offer != self.rx_tag
        if renewing and hello.echo == self._offer:
            return self._begin(hello, now)
        if hello.established:
            if (hello.offer, hello.echo) == (self.tx_tag, self.rx_tag):
                self._heard_at = now
        elif hello.echo == self.rx_tag and hello.offer != self.tx_tag:
            # it knows our offer and not its own: a HELLO of another incarnation came between. Both need a new one
            if not renewing:
                self._make_offer(self._peer, now)
            self._echo = hello.offer
            self.hello_due = True
        else:
            self.keep_alive()
        return False

    def _make_offer(self, candidate: int, now: int) -> None:
        self._candidate, self._offer, self._offered_at = candidate, self._draw(), now

    def _begin(self, hello: Hello, now: int) -> bool:
        self.handshake_rtt_ns = now - self._offered_at
        self.state = SessionState.ESTABLISHED
        self._peer = hello.ident
        self.rx_tag = self._offer
        self.tx_tag = self._echo = hello.offer
        self.peer_first = hello.first
        self._heard_at = now
        self.hello_due = not hello.established
        return True

    def keep_alive(self) -> None:
        """Tell the peer of the present session that it stands."""
        self._candidate, self._offer, self._echo = self._peer, self.rx_tag, self.tx_tag
        self.hello_due = True

    def poll_hello(self) -> Hello | None:
        """Return the HELLO that is due, or None."""
        if not self.hello_due:
            return None
        self.hello_due = False
        established = self.established and self._offer == self.rx_tag
        return Hello(self._ident, self._offer, self._echo, established, self.first)

    def next_deadline(self) -> int:
        """When to repeat the HELLO or to give the peer up."""
        return self._heard_at + self._dead_after_ns if self.established else self._hello_at

    def handle_deadline(self, now: int) -> bool:
        """Repeat the HELLO, or end the session of a peer that is gone; return whether it ended. No-op when early."""
        if now < self.next_deadline():
            return False
        if self.established:
            self._seek(now)
            return True
        self.hello_due = True
        self._hello_interval = min(2 * self._hello_interval, HELLO_TIMER_MAX_NS)
        self._hello_at = now + self._hello_interval
        return False

    def _draw(self) -> int:
        return self._rng.randrange(1, 1 << 32)
