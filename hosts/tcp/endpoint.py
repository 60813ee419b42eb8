"""A connection as applications and probes see it: the octets that pass through it, and its readings.

The state machine behind it stands in `connection.py`.
"""

from random import Random

from hosts.tcp.config import TcpConfig
from hosts.tcp.counters import Counters
from hosts.tcp.receiver import Receiver
from hosts.tcp.send_state import INFINITE
from hosts.tcp.sender import Sender
from hosts.tcp.shared import Shared
from hosts.tcp.states import State
from tcpip.segment import Flow, Segment


class Endpoint:
    """One end's two halves; `flow` is the direction it sends in, `iss` the 32-bit initial sequence number."""

    __slots__ = (
        "_config",
        "_iss",
        "_outbox",
        "_receiver",
        "_sender",
        "connected",
        "counters",
        "error",
        "flow",
        "state",
    )

    def __init__(self, config: TcpConfig, flow: Flow, iss: int, shared: Shared | None, rng: Random | None) -> None:
        self._config = config
        self._iss = iss
        self.flow = flow
        self.state = State.CLOSED
        #: why the connection came to an end other than by FINs: one line, or None
        self.error: str | None = None
        #: whether the handshake is complete (and stays True afterwards)
        self.connected = False
        self.counters = Counters()
        self._sender = Sender(config, self.counters, iss + 1, rng)
        self._receiver = Receiver(config, shared)
        #: segments that are ready to be sent
        self._outbox: list[Segment] = []

    # -- the application -------------------------------------------------------------------------------------

    @property
    def write_room(self) -> int:
        """Octets `write` would take now."""
        buffer = self._sender.buffer
        return max(0, self._config.buffers.send_buffer - (buffer.end - buffer.start))

    def write(self, data: bytes | int) -> int:
        """Take octets to send and return how many were taken; or take just so many (virtual time), always all.

        May be called as soon as the connection is opened. Raises RuntimeError after `close`.
        """
        sender = self._sender
        if sender.closing:
            raise RuntimeError("nothing can be written after close")
        if sender.delivery is not None:
            sender.delivery.check_app_limited()
        if isinstance(data, int):
            self._sender.buffer.append(data)
            return data
        taken = data[: self.write_room]
        self._sender.buffer.append(taken)
        return len(taken)

    @property
    def readable(self) -> int:
        """Octets received in order and not read yet."""
        return self._receiver.readable

    def read(self, most: int) -> bytes:
        """Take up to `most` of the received octets."""
        return self._receiver.read(most)

    def discard(self, most: int | None = None) -> int:
        """Take all received octets, or up to `most`, unseen, as an application does that only counts; return how many.

        Octets that are not taken keep the window small.
        """
        return self._receiver.discard(most)

    @property
    def fin_received(self) -> bool:
        """Whether the peer's FIN has come and everything before it, read or not."""
        receiver = self._receiver
        return receiver.fin is not None and receiver.nxt > receiver.fin

    @property
    def at_end(self) -> bool:
        """Whether the peer's FIN has come and everything before it was read."""
        receiver = self._receiver
        return receiver.fin is not None and receiver.read_up_to == receiver.fin < receiver.nxt

    @property
    def closed(self) -> bool:
        """Whether nothing is left to do: no segment to send, no timer to wait for (TIME-WAIT is not over yet)."""
        return self.state is State.CLOSED and not self._outbox

    @property
    def drained(self) -> bool:
        """Whether everything written, and the FIN if there is one, was acknowledged."""
        return self._sender.una == self._sender.end

    # -- for probes ------------------------------------------------------------------------------------------

    @property
    def bytes_acked(self) -> int:
        """Payload octets the peer has acknowledged."""
        return self._sender.buffer.start - self._iss - 1

    @property
    def bytes_received(self) -> int:
        """Payload octets received in order."""
        return self._receiver.bytes_received

    @property
    def cwnd(self) -> int:
        """Congestion window, octets; 0 before the connection is established."""
        return self._sender.growth.cwnd

    @property
    def ssthresh(self) -> int | None:
        """Slow start threshold, octets; None while it is as high as can be."""
        ssthresh = self._sender.growth.ssthresh
        return ssthresh if ssthresh < INFINITE else None

    @property
    def flight(self) -> int:
        """FlightSize: octets sent and not acknowledged, the FIN included (RFC 5681 section 2)."""
        return self._sender.flight

    @property
    def smss(self) -> int:
        """Data octets of a full segment."""
        return self._sender.smss

    @property
    def srtt_ns(self) -> int | None:
        """Smoothed round-trip time; None before the first sample."""
        return self._sender.rto.srtt_ns

    @property
    def rto_ns(self) -> int:
        """Retransmission timeout, backoff included."""
        return self._sender.rto.rto_ns

    @property
    def fallback(self) -> str | None:
        """What it was in place of its configuration, as the peer has not agreed, in one line; None: itself, or not
        established.
        """
        return self._sender.fallback

    @property
    def erasure_rate(self) -> float | None:
        """LT-TCP's estimate of the share of segments lost; None without FEC."""
        protection = self._sender.protection
        return None if protection is None else protection.estimate.rate
