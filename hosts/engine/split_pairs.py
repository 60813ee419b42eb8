"""Split TCP connections: a base station's pairs of connections, one towards each host.

    wired host == connection of BAS == connection of BAS ~~ radio ~~ mobile host

Read first: COMPARISON sections 2.2 and 3.3; docs/split.md. Two drivers: `hosts/split_proxy.py` in real time, with
octets and the kernel's connections, and `testbed/model/split_station.py` in virtual time, with numbers of octets.

Rules kept

- The base station uses the address and port of each host towards the other one: neither host sees the base station.
- The base station accepts at once and connects onwards after the handshake, so it resets a connection that the other
  host refuses.
- A FIN is relayed after the last octet before it, in each direction separately; any other end of one side resets the
  other side.

Not kept: an acknowledged octet has reached the base station, but perhaps not its receiver.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
from typing import Any, Final

from mypy_extensions import mypyc_attr

from hosts.tcp.config import TcpConfig

#: connections that a base station splits at a time; it ignores a SYN beyond them
MOST_CONNECTIONS: Final = 16_384


@dataclass(slots=True)
class SplitCounters:
    """Counters of a base station that splits connections. docs/runs.md defines every field."""

    #: end-to-end connections, and SYNs ignored for want of room
    connections: int = 0
    refusals: int = 0
    #: largest number of octets held of one direction of a connection
    peak_bytes: int = 0
    #: of its own TCP towards the mobile host
    retransmissions: int = 0
    timeouts: int = 0

    def __reduce__(self) -> tuple[type["SplitCounters"], tuple[int, ...]]:
        """Pickle alike compiled and interpreted: a machine in virtual time is interpreted, who reads it may not be."""
        return SplitCounters, astuple(self)


def relay_config(config: TcpConfig, *, mss: int, window: int, **changes: Any) -> TcpConfig:
    """Return the TCP of one side of a base station that splits connections.

    It holds nothing back (RFC 896), and offers `window` octets or the largest window that it can. `changes` are
    further options.
    """
    return config.but(mss=mss, receive_buffer=min(window, config.largest_window), nagle=False, **changes)


@mypyc_attr(allow_interpreted_subclasses=True)
class End(ABC):
    """One connection of a pair; it calls `Pair.moved` after every event."""

    pair: "Pair | None" = None

    def handle(self, now: int) -> None:
        """Tell the pair of an event."""
        if self.pair is not None:
            self.pair.moved(self)

    @property
    @abstractmethod
    def error(self) -> str | None:
        """The reason for an end without FINs; None: there is none."""

    @property
    @abstractmethod
    def over(self) -> bool:
        """Whether both streams have ended and every octet was acknowledged."""

    @property
    @abstractmethod
    def retransmits(self) -> int:
        """Segments sent again so far."""

    @property
    @abstractmethod
    def timeouts(self) -> int:
        """Retransmission timeouts so far."""

    @abstractmethod
    def relay(self, sink: "End") -> int:
        """Pass on received octets, as many as `sink` takes, and then FIN.

        Returns the number of octets held: acknowledged to the peer, and not yet by the sink's peer.
        """

    @abstractmethod
    def settle(self, other: "End") -> None:
        """Send the octets written, and choose the events to wait for."""

    @abstractmethod
    def reset(self) -> None:
        """End at once, with a RST where the peer must learn of it."""

    @abstractmethod
    def release(self) -> None:
        """Give the connection up; octets written are still sent."""


class Pair:
    """The two connections of one end-to-end connection."""

    def __init__(self, near: End, far: End, *, wireless: End, retire: Callable[["Pair"], None]) -> None:
        self.near, self.far, self.wireless, self._retire = near, far, wireless, retire
        #: largest number of octets held in one direction
        self._peak_bytes = 0
        self._over = False
        near.pair = far.pair = self

    def add_to(self, counters: SplitCounters) -> None:
        """Add this pair's counters."""
        counters.peak_bytes = max(counters.peak_bytes, self._peak_bytes)
        counters.retransmissions += self.wireless.retransmits
        counters.timeouts += self.wireless.timeouts

    def moved(self, moved: End) -> None:
        """Relay octets after an event at one end."""
        if self._over:
            return
        other = self.far if moved is self.near else self.near
        if moved.error is None and other.error is None:
            held = max(moved.relay(other), other.relay(moved))
            if held > self._peak_bytes:
                self._peak_bytes = held
        if moved.error is not None or other.error is not None:
            self.reset()
        elif moved.over and other.over:
            self._end()
            moved.release()
            other.release()
        else:
            other.settle(moved)
            moved.settle(other)

    def reset(self) -> None:
        """End both connections at once."""
        self._end()
        self.near.reset()
        self.far.reset()

    def _end(self) -> None:
        self._over = True
        self._retire(self)


class Pairs:
    """All pairs of a base station, `most` at a time, and their counters."""

    def __init__(self, most: int = MOST_CONNECTIONS) -> None:
        self._most = most
        self._done = SplitCounters()
        #: unfinished pairs; a dictionary keeps their order
        self._pairs: dict[Pair, None] = {}

    def __bool__(self) -> bool:
        return bool(self._pairs)

    def join(self, near: End, connect: Callable[[], End | None], *, near_is_wireless: bool) -> Pair | None:
        """Connect onwards for an accepted connection; reset it when there is no room or no route."""
        if len(self._pairs) >= self._most:
            self._done.refusals += 1
            near.reset()
            return None
        far = connect()
        if far is None:
            near.reset()
            return None
        self._done.connections += 1
        pair = Pair(near, far, wireless=near if near_is_wireless else far, retire=self._retire)
        self._pairs[pair] = None
        return pair

    def all(self) -> list[Pair]:
        """Return the unfinished pairs."""
        return list(self._pairs)

    def counters(self) -> SplitCounters:
        """Return the counters so far."""
        counters = replace(self._done)
        for pair in self._pairs:
            pair.add_to(counters)
        return counters

    def _retire(self, pair: Pair) -> None:
        del self._pairs[pair]
        pair.add_to(self._done)
