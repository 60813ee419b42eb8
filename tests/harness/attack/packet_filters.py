"""Packet filters under attack, beside real connections: all of the registry, alone and together."""

from collections import deque
from random import Random
from typing import Any, Final, Literal, NamedTuple

from typing_extensions import override

from common.units import MS, SECOND
from linklayer.filters import FILTERS
from linklayer.filters.filter import End, Filter, FilterPlugin
from linklayer.filters.filtered import Filtered
from linklayer.filters.window import WINDOW, WindowOptions
from linklayer.link import Link, LinkContext
from linklayer.plain import Plain, PlainFrame
from linklayer.schemes import SCHEMES
from tcpip.access import Access, Objects, Octets
from tests.harness.attack.door import Door, require
from tests.harness.attacked_network import MakeEnd, Network
from tests.harness.attacker import Attacker
from tests.harness.checked import footprint

#: local retransmissions of one packet, and seconds after the last packet until nothing is due: limits of any filter
MOST_OFTEN: Final = 16
LONGEST_S: Final = 3600
#: share of the octets without the attack that valid flows get at least, and how long both are compared
LEAST_OCTETS, COMPARED_S = 0.8, 4
#: options of a filter that divides something among all connections, those of others too: with these each gets the least
#: that it can be left with, which is what it is compared with then
LEFT_AT_LEAST: Final = {WINDOW.options_key: WindowOptions(shared_bytes=1)}
#: hostile packets from which that is worth its time
WORTH_COMPARING: Final = 200
#: octets that an end of a link may hold: the base station's 16 MB and what the harness notes on each packet
MOST_HELD: Final = 64 << 20


class Target(NamedTuple):
    filters: tuple[str, ...]
    end: End = "base"
    #: whether the link reports lost packets
    reports: bool = False

    def __str__(self) -> str:
        return f"{' + '.join(self.filters)}{', reports' if self.reports else ''}, {self.end} end"


def _does_anything(plugin: FilterPlugin, end: End) -> bool:
    """Whether a filter with its default options does anything at an end."""
    context = LinkContext(end=end, access=Octets(), sized=False, rng=Random(1), now=0, frame_ms=5.0)
    return type(plugin.make(plugin.options(), context)) is not Filter


#: each registered filter alone at each of its ends, unless it does nothing there; the filters of each scheme with a
#: marker; and markers with reports
TARGETS: Final = (
    *(Target((name,), end) for name in FILTERS for end in FILTERS[name].ends if _does_anything(FILTERS[name], end)),
    *(Target((*(each.name for each in scheme.filters), "eln-base")) for scheme in SCHEMES.values() if scheme.resends),
    Target(("snoop-smart", "tagger", "eln-ends"), "mobile"),
    Target(("eln-base",), reports=True),
)


class _Reporting(Plain):
    """A link that reports now and then one of its latest packets as lost for good, true or not."""

    def __init__(self) -> None:
        super().__init__()
        self._rng = Random(1)
        self._lately: deque[Any] = deque(maxlen=32)

    @override
    def poll_frame(self, now: int) -> PlainFrame | None:
        frame = super().poll_frame(now)
        if frame is not None:
            self._lately.append(frame.payload)
        return frame

    @override
    def poll_given_up(self) -> Any | None:
        return self._rng.choice(self._lately) if self._lately and self._rng.random() < 0.05 else None


def make_ends(target: Target, *, sized: bool, options: dict[str, Any] | None = None) -> MakeEnd:
    """Return a function that makes either end of the link; `options` of filters by key, in place of the defaults."""
    chosen = options or {}

    def make_end(end: End, now: int) -> Link:
        access = Objects() if sized else Octets()
        context = LinkContext(
            end=end, access=access, sized=sized, rng=Random(1), now=now, frame_ms=5.0, reports=target.reports
        )
        plugins = [plugin for name in target.filters if end in (plugin := FILTERS[name]).ends]
        filters = [plugin.make(chosen.get(plugin.options_key, plugin.options()), context) for plugin in plugins]
        return Filtered(_Reporting() if target.reports else Plain(), filters)

    return make_end


#: hostile packets of other flows; forged ACKs in valid flows, too; forged data, too
Kind = Literal["others", "forged ACKs", "forged data"]
KINDS: Final[tuple[Kind, ...]] = ("others", "forged ACKs", "forged data")


class FilterDoor(Door):
    """The filters of one end, beside nine real connections; with packets as octets and as objects, which agree."""

    def __init__(self, target: Target, kind: Kind, seed: int) -> None:
        self.kind = kind
        self._seed, self._target = seed, target
        self.networks = tuple(self._network(access) for access in (Octets(), Objects()))
        forge = None if kind == "others" else self.networks[0].seen
        self._attacker = Attacker(Random(f"{seed} attack"), forge=forge, forge_data=kind == "forged data")
        self._shots, self._forgotten = 0, False
        plugins = [FILTERS[name] for name in target.filters if target.end in FILTERS[name].ends]
        self._guesses, self._resends = (any(getattr(p, name) for p in plugins) for name in ("guesses", "resends"))

    def _network(self, access: Access, options: dict[str, Any] | None = None) -> Network:
        ends = make_ends(self._target, sized=isinstance(access, Objects), options=options)
        return Network(ends, access, seed=self._seed, attacked=self._target.end, retries=MOST_OFTEN)

    @override
    def shoot(self, rng: Random) -> None:
        self._attacker.rng = rng
        self._shots += 1
        shot = self._attacker.next()
        # long pauses now and then, in which timers expire
        gap_ns = int(rng.expovariate(1 / (2 * MS * (50 if rng.random() < 0.002 else 1))))
        for network in self.networks:
            network.shoot(shot, gap_ns)

    @override
    def forget(self) -> None:
        self._forgotten = True
        for network in self.networks:
            network.attacked.restart()

    @override
    def check(self) -> None:
        octets, objects = (network.attacked.checked.volume for network in self.networks)
        require(octets == objects, f"octets: {octets}, objects: {objects}")
        require(self._guesses or not octets["guesses"], "a filter guesses that declares no guesses")
        require(self._resends or not octets["retransmissions"], "a filter resends that declares no resending")
        for network in self.networks:
            held = footprint(network.attacked.checked.link)
            require(held <= MOST_HELD, f"{held} octets are held")
            broken = [what for story in network.stories.values() for what in story.broken]
            require(self.kind == "forged data" or not broken, broken)

    @override
    def finish(self) -> None:
        octets, objects = self.networks
        for network in self.networks if self._shots > WORTH_COMPARING else ():
            network.run_calm(max(0, COMPARED_S * SECOND - network.clock.now))
        self.check()
        require(octets.octets == objects.octets, "valid flows differ with octets and with objects")
        if self.kind == "others" and self._shots > WORTH_COMPARING and not self._forgotten:
            calm = self._network(Objects(), LEFT_AT_LEAST)
            calm.run_calm(octets.clock.now)
            got = f"valid flows got {octets.octets} octets, {calm.octets} without the attack"
            require(octets.octets > LEAST_OCTETS * calm.octets > 0, got)
        if self.kind != "forged data" and self._shots > WORTH_COMPARING:
            require(sum(len(story.finished_at) for story in octets.stories.values()) > 5, "too few transfers ended")
        for network in self.networks:
            idle_at = network.settle()
            require(idle_at is not None, "something is due for ever after the attack")
            assert idle_at is not None
            require(idle_at - network.clock.now < LONGEST_S * SECOND, "something is due an hour after the attack")
