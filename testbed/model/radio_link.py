"""A radio link in virtual time: two stations and their air, for a scenario's network or for any other.

        mobile end -- up -->   base station
                   <-- down --

`stations["up"]` is the mobile end, which transmits up: it takes the packets that are to cross up, and those that have
crossed down go to the `deliver` of direction down.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from channel.capacity.cra import ConstantRate
from channel.errors import ErrorModel
from channel.errors.none import NoErrors
from channel.framing import Framing, raw
from channel.hop import Arrival, Hop
from common.sides import SIDES, Side
from common.units import SECOND
from hosts.engine.clock import Clock
from hosts.engine.packets import Deliver
from linklayer.classify import Classifier
from linklayer.filters import FILTERS
from linklayer.filters.filter import Filter
from linklayer.filters.filtered import Filtered
from linklayer.link import Link, Scheme
from linklayer.queues import Queue
from linklayer.queues.drop_tail import DropTail
from linklayer.schemes import SCHEMES
from linklayer.station_counts import StationCounts
from tcpip.access import Objects
from testbed.model.station_driver import ModelStation, join
from testbed.results.frame_fates import OBJECTS, FrameFates
from testbed.results.frame_trace import FrameTrace
from testbed.results.ground_truth import GuessScore, LossReporter
from testbed.scenario.run_plan import ENDS, Chosen, LinkPlan, make_rng

_NO_LIMIT: Final = 1 << 61
#: with this classifier all packets take the reliable channel, UDP as well
_ONE_CHANNEL: Final = Classifier(frozenset(), frozenset())


@dataclass(frozen=True, kw_only=True)
class Direction:
    """One direction of a radio link: the end that transmits, its queues by channel, and its hop.

    `deliver` takes the packets that have crossed, `on_arrival` every frame with its fate. `trace` gets the rows of the
    frames; `frame_ns` returns the time to send some octets.
    """

    link: Link
    hop: Hop[Any]
    queues: tuple[Queue, ...]
    deliver: Deliver
    frame_ns: Callable[[int], int]
    on_arrival: Callable[[Arrival[Any]], None] | None = None
    trace: FrameTrace | None = None


class RadioLink:
    """Two stations, joined and started; `stations` are by the side that they transmit on.

    `repeats`: packets cross in several frames that no acknowledgement settles. `guess_score` takes the losses of the
    link and the guesses of its packet filters; `loss_reporter` is where losses elsewhere on the path are told.
    """

    def __init__(
        self,
        clock: Clock,
        scheme: Scheme,
        *,
        up: Direction,
        down: Direction,
        max_frame_bytes: int,
        repeats: bool = False,
        classifier: Classifier = _ONE_CHANNEL,
        guess_score: GuessScore | None = None,
    ) -> None:
        self.guess_score = guess_score
        self.loss_reporter: LossReporter | None = None
        if guess_score is not None:
            take_loss, take_guess = guess_score.handle_loss, guess_score.handle_guess
            self.loss_reporter = LossReporter(Objects(), scheme, take_loss, take_guess)

        def station(out: Direction, back: Direction) -> ModelStation:
            return ModelStation(
                clock,
                link=out.link,
                scheme=scheme,
                hop=out.hop,
                queues=out.queues,
                classifier=classifier,
                max_frame_bytes=max_frame_bytes,
                deliver=back.deliver,
                on_arrival=out.on_arrival,
                fates=FrameFates(
                    OBJECTS,
                    out.frame_ns,
                    trace=out.trace,
                    loss_reporter=self.loss_reporter,
                    repeats=repeats,
                ),
            )

        self.stations: Mapping[Side, ModelStation] = {"up": station(up, down), "down": station(down, up)}
        join(self.stations["up"], self.stations["down"])

    def counts(self, side: Side) -> StationCounts:
        """Return the counts of the station that transmits on `side`: sent there, received and repaired on the other."""
        return self.stations[side].meter.counts()


@dataclass(frozen=True, kw_only=True)
class RadioLinkConfig:
    """A radio link of equal rate, delay and scheme in both directions.

    `scheme` and `filters` are names of the registries; `options` is the scheme's dataclass, or values of its fields by
    name (others: their defaults).
    `filter_options` has the dataclasses of those packet filters, the scheme's own among them, that differ from the
    defaults. An end has a filter when its declaration says so.
    """

    scheme: str = "none"
    options: Any = field(default_factory=dict)
    filters: tuple[str, ...] = ()
    filter_options: Mapping[str, Any] = field(default_factory=dict)
    rate_bps: int = 1_500_000
    #: one way
    propagation_ns: int = 1_000_000
    framing: Framing = raw
    #: of the largest IP packet
    mtu_bytes: int = 1500


def make_radio_link(
    clock: Clock,
    config: RadioLinkConfig,
    *,
    seed: int,
    deliver: Mapping[Side, Deliver],
    errors: Mapping[Side, ErrorModel] | None = None,
    queues: Mapping[Side, Queue] | None = None,
    on_arrival: Mapping[Side, Callable[[Arrival[Any]], None]] | None = None,
    guess_score: GuessScore | None = None,
    name: str = "radio",
) -> RadioLink:
    """Return the radio link of `config`, without a scenario. All mappings are by the direction of the packets.

    A direction without `errors` is clean, and one without `queues` has a queue without limit. The MAC buffer holds two
    frames. Where a link has no flow control (scheme `none` without packet filters) its packets wait in a MAC buffer
    without limit, or in the queue that is given for it. `name` tells the random numbers of several links apart.
    """
    scheme, options = SCHEMES[config.scheme], config.options
    if isinstance(options, Mapping):
        options = scheme.options(**options)
    filters = tuple(
        Chosen(plugin, config.filter_options.get(plugin.name) or plugin.options())
        for plugin in (*scheme.filters, *(FILTERS[each] for each in config.filters))
    )
    max_frame_bytes = config.mtu_bytes + scheme.overhead_bytes
    frame_ms = config.framing(max_frame_bytes) * 1000 / config.rate_bps

    def frame_ns(nbytes: int) -> int:
        return config.framing(nbytes) * SECOND // config.rate_bps

    plans = {
        side: LinkPlan(end=ENDS[side], scheme=scheme, options=options, filters=filters, frame_ms=frame_ms)
        for side in SIDES
    }

    def direction(side: Side) -> Direction:
        link = plans[side].make(make_rng(seed, name, "link", side), clock.now, sized=True)
        queue = (queues or {}).get(side)
        if queue is not None and not link.flow_control:
            # a filter that does nothing gives it flow control
            link = Filtered(link, (Filter(),))
        hop: Hop[Any] = Hop(
            capacity=ConstantRate(config.rate_bps),
            framing=config.framing,
            errors=(errors or {}).get(side) or NoErrors(),
            propagation_ns=config.propagation_ns,
            buffer_bytes=2 * max_frame_bytes if link.flow_control else _NO_LIMIT,
        )
        return Direction(
            link=link,
            hop=hop,
            queues=(DropTail(limit_bytes=_NO_LIMIT) if queue is None else queue,),
            deliver=deliver[side],
            frame_ns=frame_ns,
            on_arrival=(on_arrival or {}).get(side),
        )

    up, down = (direction(side) for side in SIDES)
    return RadioLink(
        clock,
        scheme,
        up=up,
        down=down,
        max_frame_bytes=max_frame_bytes,
        repeats=plans["up"].repeats,
        guess_score=guess_score,
    )
