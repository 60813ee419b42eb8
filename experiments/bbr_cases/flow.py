"""One flow of BBR over a path that a case changes as it goes, and what its model does.

    h1 -- drop?, policer? -- bottleneck: rate, buffer -- hold? -- h2, which acknowledges over -- batches? -- h1

Virtual time (tier `model`): hosts, clock and TCP are those of all runs; the path is this file's, since its faults come
at moments of BBR's own states.

Rules kept
- A case reads the draft's variables, `Bbr3`'s attributes, and changes none of them.
- The model is looked at after each segment and timer that the sender has handled, before it sends.
- Rates of the path are of whole packets, as those of all wires; `payload_rate` is what BBR can measure of it.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any, Final

from common.units import SECOND
from hosts.engine.packets import Datagram, Taker
from hosts.engine.stack import Application, Socket, Stack
from hosts.tcp.config import TcpConfig
from hosts.tcp.delivery import DeliveryRate
from hosts.tcp.growth.bbr3 import Bbr3, State
from tcpip.segment import Segment
from testbed.model.virtual_clock import VirtualClock
from testbed.scenario.run_plan import make_rng

MTU_BYTES: Final = 1500
_SOURCE, _SINK, _PORT = 0x0A01_0001, 0x0A02_0001, 5000
#: data that the application has ready beyond what was sent, segments
_AHEAD: Final = 16
#: the states of ProbeBW
PROBE_BW: Final = frozenset(
    {State.PROBE_BW_DOWN, State.PROBE_BW_CRUISE, State.PROBE_BW_REFILL, State.PROBE_BW_UP}
)  # fmt: skip


class Path(Taker):
    """The way of the data: a bottleneck with a drop-tail buffer and what stands before and behind it."""

    def __init__(self, clock: VirtualClock, to: Taker, *, rate_bps: float, delay_ns: int, buffer_bytes: float) -> None:
        self._clock, self._to = clock, to
        self.rate_bps, self.delay_ns, self.buffer_bytes = rate_bps, delay_ns, buffer_bytes
        #: whether a segment with data is lost before the bottleneck
        self.drop: Callable[[Segment], bool] = lambda segment: False
        #: how much longer a segment travels, which others pass (ns)
        self.hold: Callable[[Segment], int] = lambda segment: 0
        #: tokens per second and the bucket's octets; None: no policer
        self.policer: tuple[float, float] | None = None
        self._tokens, self._filled_at = inf, 0
        self._waiting: deque[Segment] = deque()
        self._waiting_bytes = 0
        self._busy = False
        #: segments with data that came, and that were lost
        self.came = self.lost = 0

    def take(self, packet: Segment) -> None:
        self.came += packet.length > 0
        nbytes = packet.nbytes
        if packet.length and (
            self.drop(packet) or not self._conforms(nbytes) or self._waiting_bytes + nbytes > self.buffer_bytes
        ):
            self.lost += 1
            return
        self._waiting.append(packet)
        self._waiting_bytes += nbytes
        if not self._busy:
            self._send()

    def _conforms(self, nbytes: int) -> bool:
        if self.policer is None:
            return True
        rate, burst = self.policer
        now = self._clock.now
        self._tokens = min(burst, self._tokens + rate * (now - self._filled_at) / SECOND)
        self._filled_at = now
        if self._tokens < nbytes:
            return False
        self._tokens -= nbytes
        return True

    def _send(self) -> None:
        self._busy = True
        nbytes = self._waiting[0].nbytes
        self._clock.at(self._clock.now + round(8 * nbytes * SECOND / self.rate_bps), self._leave)

    def _leave(self, _: Any) -> None:
        packet = self._waiting.popleft()
        self._waiting_bytes -= packet.nbytes
        self._clock.give(self._clock.now + self.delay_ns + self.hold(packet), self._to, packet)
        if self._waiting:
            self._send()
        else:
            self._busy = False


class AckPath(Taker):
    """The way of the ACKs. With `batch_ns` they wait for the next multiple of it, and leave together."""

    def __init__(self, clock: VirtualClock, delay_ns: int) -> None:
        self._clock, self._delay_ns = clock, delay_ns
        self.to: Taker | None = None
        self.batch_ns = 0

    def take(self, packet: Segment) -> None:
        assert self.to is not None
        at = self._clock.now
        if self.batch_ns:
            at = -(-at // self.batch_ns) * self.batch_ns
        self._clock.give(at + self._delay_ns, self.to, packet)


@dataclass(frozen=True, slots=True)
class Seen:
    """The model as a state was entered, and the sender's data in flight (octets, octets/s, ns)."""

    at: int
    before: State
    state: State
    round_count: int
    max_bw: float
    bw: float
    inflight: int
    #: BBRInflight(1.0) and BBRInflightWithHeadroom()
    target: float
    headroom: float
    inflight_longterm: float
    extra_acked: float
    cwnd: int
    is_app_limited: bool
    #: round trips in a row that have not grown by 25 %
    flat_rounds: int


class Flow(Application):
    """The sender: it writes as the case says, and notes what its model does. `until` runs the clock."""

    def __init__(
        self, config: TcpConfig, *, seed: int, rate_bps: float, rtt_ns: int, buffer_bytes: float = inf
    ) -> None:
        self.clock = clock = VirtualClock()
        back = AckPath(clock, rtt_ns // 2)
        sink = Stack(clock, _SINK, back, make_rng(seed, "iss", "sink"))
        self.path = Path(clock, sink, rate_bps=rate_bps, delay_ns=rtt_ns // 2, buffer_bytes=buffer_bytes)
        source = Stack(clock, _SOURCE, self._leave, make_rng(seed, "iss", "source"))
        self.back, back.to = back, source
        self.rtt_ns = rtt_ns
        sink.listen(config.but(mss=MTU_BYTES - 40), _PORT, _Reader)
        #: octets per second that the application writes; inf: as much as can be sent
        self.writes = inf
        self._written = 0
        #: called at each look
        self.looked: Callable[[], None] = lambda: None
        #: called after each segment has left
        self.left: Callable[[], None] = lambda: None
        self._awaited: Callable[[], bool] = lambda: False
        self.seen: list[Seen] = []
        self._full_bw, self.flat_rounds, self._round = 0.0, 0, -1
        #: within `handle`, behind which the socket sends by itself
        self._handling = False
        self._connected = False
        self._socket: Socket = source.connect(config.but(mss=MTU_BYTES - 40), _SINK, _PORT, self)
        self.connection = self._socket.connection
        while not self.connection.connected:
            self.after(0.001)
        growth, delivery = self.connection._sender.growth, self.connection._sender.delivery
        assert isinstance(growth, Bbr3)
        assert delivery is not None
        self.bbr: Bbr3 = growth
        self.delivery: DeliveryRate = delivery
        self.state = growth.state
        self.smss = self.connection.smss
        self._connected = True

    # -- the application -------------------------------------------------------------------------------------

    def write_at(self, octets_per_s: float) -> None:
        """Write so much from now on, two segments at a time; 0: nothing."""
        self.writes = octets_per_s
        self._tick(octets_per_s)

    def write_all(self) -> None:
        """Have data without end again."""
        self.writes = inf
        self._write()

    def _tick(self, octets_per_s: float) -> None:
        if self.writes == octets_per_s and octets_per_s:
            self._put(2 * self.smss)
            self.clock.at(self.clock.now + round(2 * self.smss * SECOND / octets_per_s), self._tick, octets_per_s)

    def _write(self) -> None:
        if self.writes == inf:
            connection = self.connection
            ahead = self._written - connection.bytes_acked - connection.flight
            if ahead < _AHEAD * self.smss:
                self._put(_AHEAD * self.smss - ahead)

    def _put(self, nbytes: int) -> None:
        self._written += self.connection.write(nbytes)
        if not self._handling:
            self._socket.pump()

    def handle(self, now: int) -> None:
        """Look at the model, and write."""
        if not self._connected:
            return
        self._look(now)
        self._handling = True
        self._write()
        self._handling = False
        self.looked()
        if self._awaited():
            self.clock.stop()

    def _leave(self, packet: Segment | Datagram) -> None:
        assert isinstance(packet, Segment)
        self.path.take(packet)
        self.left()

    # -- the model -------------------------------------------------------------------------------------------

    def _look(self, now: int) -> None:
        bbr, delivery = self.bbr, self.delivery
        sample = bbr._rs
        if bbr.round_start and bbr.round_count != self._round:
            self._round = bbr.round_count
            # section 5.3.1.2, in our own count
            if not sample.is_app_limited:
                if sample.delivery_rate >= 1.25 * self._full_bw:
                    self._full_bw, self.flat_rounds = sample.delivery_rate, 0
                else:
                    self.flat_rounds += 1
        if bbr.state is self.state:
            return
        self.seen.append(
            Seen(
                at=now,
                before=self.state,
                state=bbr.state,
                round_count=bbr.round_count,
                max_bw=bbr.max_bw,
                bw=bbr.bw,
                inflight=delivery.inflight,
                target=self.inflight(bbr.max_bw),
                headroom=self.headroom(),
                inflight_longterm=bbr.inflight_longterm,
                extra_acked=bbr.extra_acked,
                cwnd=bbr.cwnd,
                is_app_limited=sample.is_app_limited,
                flat_rounds=self.flat_rounds,
            )
        )
        self.state = bbr.state
        if bbr.state is State.PROBE_BW_UP:
            # StartProbeBW_UP
            self._full_bw, self.flat_rounds = sample.delivery_rate, 0

    def inflight(self, bw: float) -> float:
        """BBRInflight(1.0) of a bandwidth (sections 5.6.4.2 and 5.5.8.1)."""
        return max(bw * self.bbr.min_rtt_ns / SECOND, 3.0 * self.bbr.send_quantum, 4.0 * self.smss)

    def headroom(self) -> float:
        """BBRInflightWithHeadroom() (section 5.3.3.9)."""
        bound = self.bbr.inflight_longterm
        return bound if bound == inf else max(bound - max(self.smss, 0.15 * bound), 4.0 * self.smss)

    @property
    def payload_rate(self) -> float:
        """Octets per second that the bottleneck carries of payload."""
        return self.path.rate_bps / 8 * self.smss / MTU_BYTES

    @property
    def bdp(self) -> float:
        """Octets of payload that fill the path and wait nowhere."""
        packet_ns = 8 * MTU_BYTES * SECOND / self.path.rate_bps
        return self.payload_rate * (self.rtt_ns + packet_ns) / SECOND

    # -- time ------------------------------------------------------------------------------------------------

    def until(self, condition: Callable[[], bool], most_s: float = 60) -> bool:
        """Run until the condition holds at a look; return False if it has not within so many seconds."""
        self._awaited = condition
        end = self.clock.now + round(most_s * SECOND)
        self.clock.run(end)
        self._awaited = lambda: False
        return condition()

    def enter(self, *states: State, most_s: float = 60) -> bool:
        """Run until one of the states is entered."""
        before = len(self.seen)
        return self.until(lambda: any(each.state in states for each in self.seen[before:]), most_s)

    def leave(self, most_s: float = 60) -> Seen | None:
        """Run until the present state is left; return the next one, None if there is none in that time."""
        before = len(self.seen)
        return self.seen[before] if self.until(lambda: len(self.seen) > before, most_s) else None

    def after(self, seconds: float) -> None:
        """Run for some time."""
        self.clock.run(self.clock.now + round(seconds * SECOND))


class _Reader(Application):
    """The receiving application: it reads at once."""

    def __init__(self, socket: Socket) -> None:
        self._connection = socket.connection

    def handle(self, now: int) -> None:
        self._connection.discard()
