"""The userspace TCP beside Linux's: cwnd over time when the same segments are lost.

    sudo .venv/bin/python -m benchmarks.kernel_cwnd [--patterns NAME ...] [--plot FILE.png] [--json]

One transfer of 600 segments of 1000 octets over a hop of 4 Mbit/s and 50 ms each way that never overflows. A pattern
names the segments, counted from 1, that are lost, and how often each; or the one that is held for seconds, with all
that is behind it. Linux (congestion control reno, IW 10, SACK on or off) runs between two namespaces, where a
forwarder between two TAPs keeps the hop's time by the wall clock; ours runs over the same hop in virtual time.
Everything Linux can do besides is off (timestamps, TLP, DSACK, delayed ACKs; F-RTO is on where a segment is held);
docs/tcp.md says what stays different, and why.

Shown for each: window reductions as cwnd -> ssthresh in segments (R: by an RTO), how many segments were sent again, and
the time from SYN to the last octet's ACK. Linux's cwnd and ssthresh are read from tcp_info after every ACK and when
nothing has come for a while; behind it stands how late its forwarder was at most.
"""

import os
import select
import socket
import struct
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise, product
from pathlib import Path
from random import Random
from types import MappingProxyType

from benchmarks.common import Column, Results, parser
from channel.capacity.cra import ConstantRate
from channel.delay import ExcessDelay
from channel.errors.none import NoErrors
from channel.framing import raw
from channel.hop import Hop
from common.sequence import MASK
from common.units import MS, SECOND
from hosts.errors import HostError
from hosts.kernel import profiles as kernel_profiles
from hosts.kernel.namespaces import run_in
from hosts.kernel.network import Network
from hosts.kernel.tap import Tap
from hosts.kernel.tcp_info import of_socket
from hosts.tcp.config import TcpConfig
from tcpip.segment import Segment
from testbed.live.timerfd import TimerFd
from tests.hosts.tcp.pair import Pair
from tests.hosts.tcp.pair import Path as Way

MSS = 1000
SEGMENTS = 600
INITIAL_WINDOW = 10
RATE_BPS, DELAY_NS, BUFFER_BYTES = 4_000_000, 50 * MS, 1 << 20
PORT = 5001
#: include/uapi/asm-generic/socket.h
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33
#: a forwarder that wakes within this is on time
PUNCTUAL_NS = 1 * MS
#: after so long a silence the window is looked at again: a busy kernel puts ACKs off that it was given
QUIET_S = 0.02
#: a transfer that takes longer has hung
PATIENCE_NS = 60 * SECOND


@dataclass(frozen=True, slots=True)
class Pattern:
    """What befalls the segments: how often each is lost; and which is held, for how long."""

    losses: Mapping[int, int] = field(default_factory=dict)
    held: int = 0
    hold_ns: int = 0


def at_random(share: float) -> dict[int, int]:
    """So many of the segments, each lost once."""
    return dict.fromkeys(sorted(Random(1).sample(range(1, SEGMENTS + 1), round(share * SEGMENTS))), 1)


PATTERNS: Mapping[str, Pattern] = MappingProxyType(
    {
        "one": Pattern({60: 1}),
        "two, apart": Pattern({60: 1, 400: 1}),
        "three in a window": Pattern({60: 1, 64: 1, 70: 1}),
        "burst of 6": Pattern(dict.fromkeys(range(60, 66), 1)),
        "retransmission too": Pattern({60: 2}),
        "last": Pattern({SEGMENTS: 1}),
        "held for 1 s": Pattern(held=150, hold_ns=1 * SECOND),
        "held for 4 s": Pattern(held=150, hold_ns=4 * SECOND),
        "2 % at random": Pattern(at_random(0.02)),
        "5 % at random": Pattern(at_random(0.05)),
    }
)
SACK = {"SACK": True, "no SACK": False}
#: of the plot: colour and line width
COLOURS: Mapping[str, tuple[str, float]] = MappingProxyType({"Linux": ("0.65", 3.0), "ours": ("C3", 1.0)})
COLUMNS = {
    "pattern": Column("pattern"),
    "tcp": Column("TCP"),
    "sent_again": Column("sent again"),
    "duration_s": Column("time (s)", ".3f"),
    "late_s": Column("late (ms)", ".1f", 1e3),
    "cuts": Column("reductions"),
}


@dataclass(frozen=True, slots=True)
class Reduction:
    """The window was cut: when, cwnd before and ssthresh after, in segments, and whether an RTO did it."""

    time_s: float
    cwnd: float
    ssthresh: float
    timeout: bool

    def __str__(self) -> str:
        return f"{'R ' if self.timeout else ''}{self.cwnd:.1f} -> {self.ssthresh:.1f} at {self.time_s:.2f}"


@dataclass(slots=True)
class Trace:
    """One transfer: (time, cwnd, ssthresh) after every ACK and RTO, and (time, segment) of all that was sent."""

    windows: list[tuple[float, float, float | None]] = field(default_factory=list)
    sent: list[tuple[float, int]] = field(default_factory=list)
    duration_s: float = 0.0
    #: how late the forwarder woke, each time it did (Linux only): their sum is what a busy machine may have added
    late_s: list[float] = field(default_factory=list)

    def note(self, now: int, cwnd: int, ssthresh: int | None) -> None:
        """Take down the window, given in octets."""
        self.windows.append((now / SECOND, cwnd / MSS, None if ssthresh is None else ssthresh / MSS))

    @property
    def reductions(self) -> list[Reduction]:
        """Where ssthresh has changed, or an RTO has left one segment."""
        found = []
        for (_, cwnd_before, ssthresh_before), (at, cwnd, ssthresh) in pairwise(self.windows):
            timeout = cwnd <= 1 < cwnd_before
            if ssthresh is not None and (timeout or ssthresh != ssthresh_before):
                found.append(Reduction(at, cwnd_before, ssthresh, timeout))
        return found

    @property
    def retransmissions(self) -> dict[int, int]:
        """How often each segment was sent again."""
        times = Counter(number for _, number in self.sent)
        return {number: count - 1 for number, count in sorted(times.items()) if count > 1}


def segment_number(seq: int) -> int:
    """The number of the segment at a sequence number relative to the SYN's."""
    return (seq - 1) // MSS + 1


class Trouble(ExcessDelay):
    """A pattern at work: `loses` is asked of every packet, `draw` by the hop of every packet that it was given."""

    def __init__(self, pattern: Pattern) -> None:
        super().__init__(0.0, max(pattern.hold_ns, 1), Random(0))
        self._left = dict(pattern.losses)
        self._held = pattern.held
        self._given = self._drawn = 0
        #: which of the packets given is to be held
        self._at = 0

    def loses(self, number: int) -> bool:
        """Whether a packet is lost; `number` is that of its segment, 0 when it carries none."""
        left = self._left.get(number, 0)
        if left > 0:
            self._left[number] = left - 1
            return True
        self._given += 1
        if number == self._held and number:
            self._held, self._at = 0, self._given
        return False

    def draw(self) -> int:
        """How long the next packet is held, in ns."""
        self._drawn += 1
        return self.hold_ns if self._drawn == self._at else 0


# -- ours -------------------------------------------------------------------------------------------------------------


def config(sack: bool, frto: bool) -> TcpConfig:
    """The options that come closest to Linux as it is set up here."""
    return TcpConfig().but(
        mss=MSS,
        recovery="sack" if sack else "newreno",
        initial_window=INITIAL_WINDOW,
        byte_counting=True,
        impatient=False,
        careful_timer=True,
        frto=frto,
        timestamps=False,
        delayed_ack_ns=0,
        min_rto_ns=200 * MS,
        # Linux's RTO is the smoothed time plus 200 ms at least
        granularity_ns=200 * MS,
        receive_buffer=1 << 20,
    )


def run_ours(sack: bool, pattern: Pattern) -> Trace:
    """One transfer in virtual time."""
    trace, trouble = Trace(), Trouble(pattern)

    def lost(segment: Segment) -> bool:
        return trouble.loses(segment_number(segment.seq - iss) if segment.length else 0)

    iss = 1000
    up = Way(rate_bps=RATE_BPS, delay_ns=DELAY_NS, buffer_bytes=BUFFER_BYTES, drop=lost, excess_delay=trouble)
    down = Way(rate_bps=RATE_BPS, delay_ns=DELAY_NS, buffer_bytes=BUFFER_BYTES)
    pair = Pair(config(sack, frto=pattern.held > 0), up=up, down=down, iss=(iss, 5000))
    client = pair.client

    def watch() -> None:
        if client.connected:
            trace.note(pair.now, client.cwnd, client.ssthresh)

    pair.watch = watch
    pair.send(0, SEGMENTS * MSS)
    pair.run_until(lambda: client.bytes_acked == SEGMENTS * MSS, PATIENCE_NS)
    trace.sent = [(at / SECOND, segment_number(segment.seq - iss)) for at, segment in up.log if segment.length]
    trace.duration_s = pair.now / SECOND
    return trace


# -- Linux's ----------------------------------------------------------------------------------------------------------


def kernel_profile(sack: bool, frto: bool) -> kernel_profiles.TcpProfile:
    """Linux's Reno with nothing but what is compared."""
    base = kernel_profiles.PROFILES["reference"]
    sysctls = {**base.sysctls, "tcp_window_scaling": "1", "tcp_sack": str(int(sack)), "tcp_frto": "2" if frto else "0"}
    return replace(base, name="compared", sysctls=sysctls, initcwnd=INITIAL_WINDOW, quickack=True, delayed_ack=False)


class Forwarder:
    """Carries packets between the TAPs of `st` and `bas` in the time of two hops, and writes the trace."""

    def __init__(self, network: Network, pattern: Pattern) -> None:
        self.trace = Trace()
        self._trouble = Trouble(pattern)
        self._st, self._bas = (
            run_in(network.namespaces[role], lambda: Tap("fl0", mtu=network.mtu)) for role in ("st", "bas")
        )
        self._up, self._down = (
            Hop[bytes](
                capacity=ConstantRate(RATE_BPS),
                framing=raw,
                errors=NoErrors(),
                propagation_ns=DELAY_NS,
                buffer_bytes=BUFFER_BYTES,
                excess_delay=excess_delay,
            )
            for excess_delay in (self._trouble, None)
        )
        self._timer = TimerFd()
        self._iss = 0
        #: when the SYN came
        self._began_at: int | None = None

    def close(self) -> None:
        """Let go of the TAPs."""
        self._st.close()
        self._bas.close()
        self._timer.close()

    def carry(self, sender: socket.socket) -> None:
        """Have `sender`, which is connecting, send `SEGMENTS` segments; return when all are acknowledged."""
        left = SEGMENTS * MSS
        until = time.monotonic_ns() + PATIENCE_NS
        with select.epoll() as poller:
            poller.register(self._st, select.EPOLLIN)
            poller.register(self._bas, select.EPOLLIN)
            poller.register(self._timer, select.EPOLLIN | select.EPOLLET)
            poller.register(sender, select.EPOLLOUT)
            while not self.trace.duration_s:
                if time.monotonic_ns() > until:
                    raise SystemExit(f"Linux did not finish {SEGMENTS} segments in {PATIENCE_NS / SECOND:.0f} s")
                events = poller.poll(QUIET_S)
                if not events and self._began_at is not None:
                    self._sample(time.monotonic_ns(), sender)
                for ready, _ in events:
                    if ready == sender.fileno():
                        left -= sender.send(bytes(left))
                        poller.modify(sender, select.EPOLLOUT if left else 0)
                self._move(sender)
                deadlines = [at for way in (self._up, self._down) if (at := way.next_deadline()) is not None]
                self._timer.set(min(deadlines, default=None))

    def _move(self, sender: socket.socket) -> None:
        """Take what the TAPs have, and hand over what has arrived."""
        while (packet := self._st.read()) is not None:
            now = time.monotonic_ns()
            if not self._is_lost(packet, now, sender):
                self._up.handle_frame(packet, len(packet), now)
        while (packet := self._bas.read()) is not None:
            self._down.handle_frame(packet, len(packet), time.monotonic_ns())
        now = due_at = time.monotonic_ns()
        while (arrival := self._up.poll_arrival(now)) is not None:
            due_at = min(due_at, arrival.arrived_at)
            self._bas.write(arrival.frame)
        while (arrival := self._down.poll_arrival(now)) is not None:
            due_at = min(due_at, arrival.arrived_at)
            # the kernel works off an ACK before this call returns, unless it is busy
            self._st.write(arrival.frame)
            self._sample(now, sender)
        if now - due_at > PUNCTUAL_NS:
            self.trace.late_s.append((now - due_at) / SECOND)

    def _is_lost(self, packet: bytes, now: int, sender: socket.socket) -> bool:
        header = (packet[0] & 15) * 4
        seq, _, offset = struct.unpack_from(">IIB", packet, header + 4)
        length = len(packet) - header - (offset >> 4) * 4
        if self._began_at is None:
            self._iss, self._began_at = seq, now
        if not length:
            return self._trouble.loses(0)
        number = segment_number(seq - self._iss & MASK)
        self.trace.sent.append(((now - self._began_at) / SECOND, number))
        # an RTO changes the window without an ACK
        self._sample(now, sender)
        return self._trouble.loses(number)

    def _sample(self, now: int, sender: socket.socket) -> None:
        assert self._began_at is not None
        info = of_socket(sender)
        since = now - self._began_at
        self.trace.note(since, info.cwnd_bytes, info.ssthresh_bytes)
        if info.bytes_acked >= SEGMENTS * MSS:
            self.trace.duration_s = since / SECOND


def run_kernel(sack: bool, pattern: Pattern) -> Trace:
    """One transfer of Linux's in real time. Raises HostError where namespaces cannot be made."""
    with ExitStack() as stack:
        network = stack.enter_context(Network(f"cwnd{os.getpid()}", mtu=MSS + 40))
        for host in ("h1", "h2"):
            kernel_profiles.apply(network.namespaces[host], kernel_profile(sack, frto=pattern.held > 0))
        forwarder = stack.enter_context(closing(Forwarder(network, pattern)))
        listener = run_in(network.namespaces["h2"], lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM))
        sender = run_in(network.namespaces["h1"], lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM))
        stack.enter_context(listener)
        stack.enter_context(sender)
        # nobody reads: all of it fits
        for end, option in ((listener, SO_RCVBUFFORCE), (sender, SO_SNDBUFFORCE)):
            end.setsockopt(socket.SOL_SOCKET, option, 8 * SEGMENTS * MSS)
        listener.bind((network.address("h2"), PORT))
        listener.listen()
        sender.setblocking(False)
        sender.connect_ex((network.address("h2"), PORT))
        forwarder.carry(sender)
        return forwarder.trace


# -- both -------------------------------------------------------------------------------------------------------------


def draw(traces: Mapping[str, Mapping[str, Trace]], file: Path) -> None:
    """Plot cwnd over time, a panel per comparison; what ours is inflated by without SACK is cut off."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(
        len(traces) // len(SACK), len(SACK), figsize=(11, 1.9 * len(traces) / len(SACK)), sharex="row", squeeze=False
    )
    for axis, (title, pair) in zip(axes.flat, traces.items(), strict=True):
        for name, trace in pair.items():
            times, windows, _ = zip(*trace.windows, strict=True)
            axis.step(times, windows, where="post", label=name, color=COLOURS[name][0], lw=COLOURS[name][1])
        axis.set_ylim(0, 1.15 * max(cwnd for _, cwnd, _ in pair["Linux"].windows))
        axis.set_title(title, fontsize=9, loc="left")
        axis.grid(alpha=0.3)
    for axis in axes[-1]:
        axis.set_xlabel("s")
    for axis in axes[:, 0]:
        axis.set_ylabel("cwnd (segments)")
    axes[0][0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(file, dpi=110)


def main() -> None:
    """Measure and print."""
    options_of = parser(__doc__, seed=None)
    options_of.add_argument("--patterns", nargs="+", choices=PATTERNS, default=[*PATTERNS], metavar="NAME")
    options_of.add_argument("--plot", type=Path, metavar="FILE.png")
    options = options_of.parse_args()
    results = Results(options, "emulated and model", f"a transfer of {SEGMENTS} segments of {MSS} octets", COLUMNS)
    traces: dict[str, dict[str, Trace]] = {}
    for name, (words, sack) in product(options.patterns, SACK.items()):
        title, pattern = f"{name}, {words}", PATTERNS[name]
        try:
            traces[title] = {"Linux": run_kernel(sack, pattern), "ours": run_ours(sack, pattern)}
        except HostError as error:
            options_of.exit(2, f"{error}\n")
        for who, trace in traces[title].items():
            results.add(
                pattern=title,
                tcp=who,
                sent_again=sum(trace.retransmissions.values()),
                duration_s=trace.duration_s,
                late_s=max(trace.late_s, default=0.0),
                cuts=", ".join(map(str, trace.reductions)),
                reductions=[asdict(cut) for cut in trace.reductions],
                retransmissions=trace.retransmissions,
            )
    if options.plot:
        draw(traces, options.plot)
    results.finish()


if __name__ == "__main__":
    main()
