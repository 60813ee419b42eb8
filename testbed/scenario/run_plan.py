"""The plan of a run: a scenario resolved by `resolver.py` into parts ready for use. Both drivers take it.

Rules kept

- A plan is frozen. Its parts make the objects of a run (`make_…`), new ones at each call.
- Every random generator is seeded by the run's seed, a purpose and a direction, so that the two directions draw
  independently and a run can be repeated.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final, Generic, TypeVar

from channel.capacity import CapacityModel
from channel.delay import ExcessDelay
from channel.delay_profiles import Tap
from channel.errors import ErrorModel, ErrorModelPlugin
from channel.framing import Framing
from channel.hop import Hop
from common.sides import HOSTS, Host, Side
from flowgraphs.access import AccessOptions
from flowgraphs.frontend import FrontEndOptions
from hosts.tcp.config import TcpConfig
from hosts.workloads import Workload
from linklayer.classify import FAST, RELIABLE, Classifier
from linklayer.filters.filter import End, Filter, FilterPlugin
from linklayer.filters.filtered import Filtered
from linklayer.link import Link, LinkContext, Scheme
from linklayer.queues import Queue, QueueContext, QueuePlugin
from tcpip.access import Objects, Octets
from testbed.tiers import Clock, Tier

#: the end that transmits on a side
ENDS: Final[Mapping[Side, End]] = {"up": "mobile", "down": "base"}


def make_rng(seed: int, *names: str) -> Random:
    """Return the random generator for one purpose of a run; equal seeds and names give equal numbers."""
    return Random(f"{seed}/{'/'.join(names)}")


P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Chosen(Generic[P]):
    """A plugin and its options."""

    plugin: P
    options: Any


@dataclass(frozen=True, kw_only=True)
class HopPlan:
    """One direction of the modelled medium."""

    side: Side
    seed: int
    rate_bps: int
    #: one way
    propagation_ns: int
    framing: Framing
    capacity: Chosen[CapacityModel]
    errors: Chosen[ErrorModelPlugin]
    #: the hold of some frames (SLOWLINK)
    excess_delay: Callable[[Random], ExcessDelay] | None
    #: octets that have left and not arrived, at most
    far_bytes: int | None
    #: the MAC buffer, with flow control and without
    buffer_bytes: Mapping[bool, int]

    def make(self, buffer_bytes: int, *, propagation_ns: int | None = None) -> Hop[Any]:
        """Return the hop; `propagation_ns` in place of the plan's. Raises ValueError (TraceError) in one line."""
        rng = make_rng(self.seed, "channel", self.side)
        return Hop(
            capacity=self.capacity.plugin.make(self.capacity.options, self.rate_bps, rng),
            framing=self.framing,
            errors=self.make_errors(rng),
            propagation_ns=self.propagation_ns if propagation_ns is None else propagation_ns,
            buffer_bytes=buffer_bytes,
            excess_delay=None if self.excess_delay is None else self.excess_delay(rng),
            far_bytes=self.far_bytes,
        )

    def make_errors(self, rng: Random) -> ErrorModel:
        """Return the error model. Raises ValueError (TraceError) in one line."""
        return self.errors.plugin.make(self.errors.options, rng)

    def frame_ns(self, nbytes: int) -> int:
        """Return the time to send a frame at the direction's rate, in whole ns."""
        return self.framing(nbytes) * 1_000_000_000 // self.rate_bps


@dataclass(frozen=True, kw_only=True)
class LinkPlan:
    """One end of the link: the endpoint of a scheme, behind the packet filters of this end."""

    end: End
    scheme: Scheme
    options: Any
    #: of both ends
    filters: tuple[Chosen[FilterPlugin], ...]
    #: time of the largest frame on the way back
    frame_ms: float

    def make(self, rng: Random, now: int, *, sized: bool) -> Link:
        """Return the end; packets are octets or, `sized`, objects with a size."""
        context = self._context(rng, now, sized=sized)
        link, filters = self.scheme.make(self.options, context), self._make_filters(context)
        return Filtered(link, filters) if filters else link

    def refit(self, link: Link, *, sized: bool) -> Link:
        """Put an end behind the filters of this plan; filters that it has stay."""
        there = {each.name: each for each in link.filters} if isinstance(link, Filtered) else {}
        fresh = self._make_filters(self._context(Random(0), 0, sized=sized))
        filters = tuple(there.get(each.name, each) for each in fresh)
        if isinstance(link, Filtered):
            link.refit(filters)
            return link
        return Filtered(link, filters) if filters else link

    @property
    def guesses(self) -> bool:
        """Whether a packet filter at any end guesses why segments are missing."""
        return any(filter_.plugin.guesses for filter_ in self.filters)

    @property
    def repeats(self) -> bool:
        """Whether packets cross in several frames that no acknowledgement settles: the scheme's or the filters'."""
        resent = self.scheme.repairs == "none" and any(filter_.plugin.resends for filter_ in self.filters)
        return self.scheme.repairs == "blind" or resent

    def _context(self, rng: Random, now: int, *, sized: bool) -> LinkContext:
        return LinkContext(
            end=self.end,
            access=Objects() if sized else Octets(),
            sized=sized,
            rng=rng,
            now=now,
            frame_ms=self.frame_ms,
            reports=self.scheme.repairs == "known",
        )

    def _make_filters(self, context: LinkContext) -> tuple[Filter, ...]:
        """Make the packet filters of the end, outermost first."""
        made = []
        for filter_ in sorted(self.filters, key=lambda chosen: chosen.plugin.position):
            if context.end in filter_.plugin.ends:
                fresh = filter_.plugin.make(filter_.options, context)
                fresh.name = filter_.plugin.name
                made.append(fresh)
        return tuple(made)


@dataclass(frozen=True, kw_only=True)
class AirPath:
    """The air that one direction crosses between virtual radios."""

    #: mean per sample over the whole sampled band, at the receiver
    snr_db: float
    cfo_hz: float
    #: of the multipath channel; none for a series
    taps: tuple[Tap, ...]
    series: Path | None


@dataclass(frozen=True, kw_only=True)
class StationPlan:
    """The station that transmits on a side."""

    side: Side
    seed: int
    link: LinkPlan
    hop: HopPlan
    air: AirPath
    queue: Chosen[QueuePlugin]
    ip_queue_bytes: int
    mtu_bytes: int
    max_frame_bytes: int

    def rng(self, purpose: str, *names: str) -> Random:
        """Return the station's random generator for a purpose."""
        return make_rng(self.seed, purpose, self.side, *names)

    def make_queues(self) -> tuple[Queue, ...]:
        """Return the IP queues, by channel."""
        return tuple(
            self.queue.plugin.make(
                self.queue.options,
                QueueContext(
                    limit_bytes=self.ip_queue_bytes,
                    mtu_bytes=self.mtu_bytes,
                    packet_time_ns=self.hop.frame_ns(self.max_frame_bytes),
                    rng=self.rng("queue", str(channel)),
                ),
            )
            for channel in (RELIABLE, FAST)
        )


@dataclass(frozen=True, kw_only=True)
class HostPlan:
    """One host's TCP."""

    #: a profile of the kernel's, or of our own with its prefix
    tcp: str
    #: the same for display, with the options that are not the profile's
    label: str
    #: recovery and growth of our own TCP that are not the profile's, each with its name and its options
    changes: Mapping[str, Mapping[str, Any]]
    #: None: the profile's
    receive_buffer_bytes: int | None
    #: of the host's own TCP, where the hosts are objects; elsewhere None
    config: TcpConfig | None


@dataclass(frozen=True, kw_only=True)
class SplitPlan:
    """The base station that splits TCP connections."""

    #: the profile of the TCP on the wireless side
    profile: str
    #: held of each direction of a connection
    buffer_bytes: int
    #: of both sides, where the base station is an object; elsewhere None
    wired: TcpConfig | None
    wireless: TcpConfig | None


@dataclass(frozen=True, kw_only=True)
class RadioPlan:
    """The radios of both stations."""

    phy: str
    #: arguments of `make_phy` at the station that receives on a side
    phy_options: Mapping[Side, Mapping[str, Any]]
    rate_sps: float
    #: the highest rate that these carriers leave room for
    most_sps: float
    carriers_hz: Mapping[Side, float]
    tx_gain_db: float | None
    #: None: follows the signal
    rx_gain_db: float | None
    #: UHD device arguments of ST's and of BAS's radio
    devices: tuple[str, str] | None
    front_end: FrontEndOptions
    #: listen before talk, where both directions share a carrier
    access: AccessOptions | None
    record: bool
    #: whether each frame has a mode of its own
    chooses_modes: bool = False


@dataclass(frozen=True, kw_only=True)
class PlannedChange:
    """A scheduled change."""

    #: of the run's time
    at_ns: int
    #: the settings by their keys
    settings: Mapping[str, Any]
    #: whether the workloads pause from then on; None: as before
    paused: bool | None
    #: holds from then on
    plan: "Plan"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One run."""

    name: str
    #: names the run's scenario, tier, scheme and seed
    stem: str
    tier: Tier
    clock: Clock
    seed: int
    mtu_bytes: int
    #: the largest frame on the air
    max_frame_bytes: int
    scheme: Scheme
    classifier: Classifier
    #: by the side that they transmit on
    stations: Mapping[Side, StationPlan]
    hosts: Mapping[Host, HostPlan]
    workloads: tuple[Workload, ...]
    #: where the scheme splits TCP connections
    split: SplitPlan | None
    #: the second link's stations: the plan of the same run over that link alone
    second: "Plan | None"
    #: the path between BAS and h2, where it is no veth
    wire_bps: int
    wire_delay_ns: int
    radio: RadioPlan
    #: an event later than this is late; more late events than the fraction fail the run
    late_bound_ns: int
    late_fraction: float
    probe_interval_ms: int
    trace: bool
    capture: bool
    #: an unfinished run is ended after this
    limit_s: float
    #: in their order
    changes: tuple[PlannedChange, ...]
    #: the scenario as plain data, from which a station's process makes its plan
    values: Mapping[str, Any]

    @property
    def guesses(self) -> bool:
        """Whether a packet filter at any end guesses why segments are missing."""
        return self.stations["up"].link.guesses or any(change.plan.guesses for change in self.changes)

    @property
    def main(self) -> Side:
        """The direction of the first workload, which the result is about."""
        return self.workloads[0].direction

    @property
    def tcps(self) -> str:
        """The TCP of both hosts, for display."""
        return " and ".join(dict.fromkeys(self.hosts[host].label for host in HOSTS))
