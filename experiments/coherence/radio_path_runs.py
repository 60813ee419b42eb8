"""Runs on the COHERENCE paper's network (`radio_path.py`): a transfer without end, cross traffic, and counters.

Rules kept
- Queues before the two slow links are of one kind: RED that marks every packet above a threshold of the instantaneous
  queue where the TCP has ECN, drop-tail where it has not. Both have the same limit.
- Frames are lost independently, with the same probability, retransmissions too; in the direction of TCP's ACKs only
  where `ack_losses` is set, link ACKs among them.
- Windows and queues are sampled every `SAMPLE_NS`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from channel.errors import ErrorModel, Fate
from channel.errors.bernoulli import Bernoulli
from channel.hop import Arrival
from common.sides import Side
from common.units import MS, SECOND, ns
from experiments.coherence.radio_path import DATA_SIDES, Position, RadioPath, RadioPathConfig
from hosts.engine.clock import OBSERVER
from hosts.engine.content import Numbers
from hosts.tcp.config import TcpConfig
from hosts.tcp.profiles import USER_PROFILES
from linklayer.filters.dupacks import HoldOptions
from linklayer.queues import Queue, QueueContext
from linklayer.queues.drop_tail import DropTail
from linklayer.queues.red import Red, RedOptions
from linklayer.schemes.arq import ArqOptions
from tcpip.segment import Segment
from testbed.model.radio_link import RadioLinkConfig
from testbed.model.transfers import content_name, receive, send
from testbed.model.virtual_clock import VirtualClock
from testbed.results.ground_truth import Confusion
from testbed.results.validity import CorruptError
from testbed.scenario.run_plan import make_rng

SAMPLE_NS: Final = 10 * MS
_PORT: Final = 5000
#: headers of IP and TCP without options
_HEADER_BYTES: Final = 40


@dataclass(frozen=True, kw_only=True)
class PathSettings:
    """All that the runs of a paper share."""

    duration_s: float
    packet_bytes: int
    lan_bps: int
    lan_delay_ms: float
    bottleneck_bps: int
    bottleneck_delay_ms: float
    wireless_bps: int
    wireless_delay_ms: float
    buffer_packets: int
    mark_packets: int
    #: of the wireless link's queue; 0: as `buffer_packets`
    wireless_buffer_packets: int
    resend_after_ms: float
    retries: int
    #: frames of link ARQ from the oldest unacknowledged to the newest
    link_frames: int
    #: whether the air loses TCP's ACKs and the link's
    ack_losses: bool
    wait_ms: float
    cross_bps: float
    cross_on_ms: float
    cross_off_ms: float
    cross_ect: bool
    delayed_ack_ms: float
    min_rto_ms: float
    #: timers are 4.4BSD's, in such ticks; 0: RFC 6298's
    tick_ms: float
    limited_transmit: bool
    one_reduction_per_window: bool
    receive_buffer_bytes: int


class Scheme(NamedTuple):
    """A scheme of the paper, in our words: the wireless link's scheme and filters, and the TCP."""

    link: str
    filters: tuple[str, ...] = ()
    #: a name in hosts/tcp/profiles/
    tcp: str = "reno"
    ecn: bool = False


@dataclass(frozen=True, kw_only=True)
class PathCase:
    """The differences between runs: the place of the wireless link, its losses, and the scheme."""

    position: Position
    per: float
    scheme: Scheme


@dataclass(frozen=True, kw_only=True)
class PathOutcome:
    """The result of a run. Packets are those with data."""

    #: delivered to the application, each once
    goodput_packets: float
    #: frames with data, and those that the air has lost; packets of TCP that queues have lost
    wireless_frames: int
    wireless_losses: int
    congestion_losses: int
    #: packets that the link has given up
    residual_losses: int
    #: time averages, in packets
    mean_cwnd: float
    mean_queue: float
    timeouts: int
    retransmissions: int
    marks: int
    confusion: Confusion
    #: (s, cwnd, queue) in packets, every `SAMPLE_NS`
    samples: list[tuple[float, float, int]] = field(default_factory=list)


def run(case: PathCase, settings: PathSettings, seed: int, *, keep_samples: bool = False) -> PathOutcome:
    """Run one transfer. Raises CorruptError when what arrived is not what was sent."""
    clock = VirtualClock()
    wireless_frames = wireless_losses = 0

    def count(arrival: Arrival[Any]) -> None:
        nonlocal wireless_frames, wireless_losses
        packet = arrival.frame.payload
        if isinstance(packet, Segment) and packet.length > 0:
            wireless_frames += 1
            wireless_losses += arrival.verdict.fate is not Fate.INTACT

    def errors(side: Side) -> ErrorModel:
        loses = settings.ack_losses or side == DATA_SIDES[case.position]
        return Bernoulli(case.per if loses else 0.0, make_rng(seed, "air", side))

    limits = {"bottleneck": settings.buffer_packets}
    limits["wireless"] = settings.wireless_buffer_packets or settings.buffer_packets
    queues = [_queue(case, settings, seed, name, limit) for name, limit in limits.items()]
    path = RadioPath(
        clock,
        _config(case, settings),
        seed=seed,
        queue=queues[0],
        radio_queue=queues[1],
        make_errors=errors,
        on_data=count,
    )
    tcp = _tcp(case, settings)
    contents = Numbers()
    content = contents.incoming(content_name(_PORT))
    counter = receive(path.sink, _PORT, tcp, content=content)
    sender = send(path.source, path.sink.address, _PORT, tcp, contents=contents)
    connection, end_at = sender.connection, round(settings.duration_s * SECOND)
    path.cross(
        rate_bps=settings.cross_bps,
        on_ms=settings.cross_on_ms,
        off_ms=settings.cross_off_ms,
        packet_bytes=settings.packet_bytes,
        end_at=end_at,
    )
    samples: list[tuple[float, float, int]] = []
    sums = [0.0, 0]

    def sample(_: object) -> None:
        cwnd, waiting = connection.cwnd / tcp.handshake.mss, len(queues[0])
        sums[0] += cwnd
        sums[1] += waiting
        if keep_samples:
            samples.append((clock.now / SECOND, cwnd, waiting))
        clock.at(clock.now + SAMPLE_NS, sample, None, OBSERVER)

    clock.at(0, sample, None, OBSERVER)
    clock.run(end_at)
    # never more than was written, and all that was acknowledged
    if not content.intact() or counter.nbytes < connection.bytes_acked:
        raise CorruptError(
            f"{case.scheme.link} in the {case.position} place, seed {seed}: what arrived is not what was sent: this is "
            "a bug of fadelab"
        )
    sampled = end_at // SAMPLE_NS + 1
    counters = connection.counters
    return PathOutcome(
        goodput_packets=counter.nbytes // tcp.handshake.mss,
        wireless_frames=wireless_frames,
        wireless_losses=wireless_losses,
        congestion_losses=path.congestion_losses,
        residual_losses=path.radio.counts(DATA_SIDES[case.position]).residual_losses,
        mean_cwnd=sums[0] / sampled,
        mean_queue=sums[1] / sampled,
        timeouts=counters.timeouts,
        retransmissions=counters.retransmits,
        marks=sum(queue.marks for queue in queues),
        confusion=path.guess_score.confusion(),
        samples=samples,
    )


def _queue(case: PathCase, settings: PathSettings, seed: int, name: str, limit: int) -> Queue:
    mark = settings.mark_packets
    if not case.scheme.ecn:
        return DropTail(limit_packets=limit)
    options = RedOptions(min_packets=mark, max_packets=mark, weight=1, mark_above=True, limit_packets=limit)
    packet_time_ns = settings.packet_bytes * 8 * SECOND // settings.bottleneck_bps
    return Red(options, QueueContext(rng=make_rng(seed, "queue", name), packet_time_ns=packet_time_ns))


def _config(case: PathCase, settings: PathSettings) -> RadioPathConfig:
    scheme = case.scheme
    hold = HoldOptions(wait_ms=settings.wait_ms)
    arq = ArqOptions(resend_after_ms=settings.resend_after_ms, retries=settings.retries, window=settings.link_frames)
    options: Mapping[str, Any] = {name: hold for name in scheme.filters if name in ("dda", "cc", "cc-sender")}
    return RadioPathConfig(
        position=case.position,
        lan_bps=settings.lan_bps,
        lan_delay_ns=ns(settings.lan_delay_ms),
        bottleneck_bps=settings.bottleneck_bps,
        bottleneck_delay_ns=ns(settings.bottleneck_delay_ms),
        cross_ect=settings.cross_ect,
        radio=RadioLinkConfig(
            scheme=scheme.link,
            options=arq if scheme.link == "arq" else {},
            filters=scheme.filters,
            filter_options=options,
            rate_bps=settings.wireless_bps,
            propagation_ns=ns(settings.wireless_delay_ms),
            mtu_bytes=settings.packet_bytes,
        ),
    )


def _tcp(case: PathCase, settings: PathSettings) -> TcpConfig:
    return USER_PROFILES[case.scheme.tcp].config.but(
        mss=settings.packet_bytes - _HEADER_BYTES,
        timestamps=False,
        ecn=case.scheme.ecn,
        delayed_ack_ns=ns(settings.delayed_ack_ms),
        min_rto_ns=ns(settings.min_rto_ms),
        tick_ns=ns(settings.tick_ms),
        limited_transmit=settings.limited_transmit,
        one_reduction_per_window=settings.one_reduction_per_window,
        receive_buffer=settings.receive_buffer_bytes,
    )
