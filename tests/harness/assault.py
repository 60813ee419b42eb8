"""An attack on one end of a link in virtual time, with valid flows about that must not feel it, and its report.

Read first: `attacked_network.py`.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from random import Random
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from common.units import SECOND
from linklayer.filters import FILTERS
from linklayer.filters.filter import End, Filter, FilterPlugin
from linklayer.filters.filtered import Filtered
from linklayer.link import Link, LinkContext
from linklayer.plain import Plain, PlainFrame
from linklayer.schemes import SCHEMES
from tcpip.access import Access, Objects, Octets
from tests.harness.attacked_network import MakeEnd, Network
from tests.harness.checked import footprint


class Target(NamedTuple):
    """Packet filters in front of a link of bare frames, and the end under attack."""

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

    def poll_frame(self, now: int) -> PlainFrame | None:
        """See Link."""
        frame = super().poll_frame(now)
        if frame is not None:
            self._lately.append(frame.payload)
        return frame

    def poll_given_up(self) -> Any | None:
        """See Link."""
        return self._rng.choice(self._lately) if self._lately and self._rng.random() < 0.05 else None


def make_ends(target: Target, *, sized: bool, options: Mapping[str, Any] = MappingProxyType({})) -> MakeEnd:
    """Return a function that makes either end of the link; `options` of filters by key, in place of the defaults."""

    def make_end(end: End, now: int) -> Link:
        access = Objects() if sized else Octets()
        context = LinkContext(
            end=end, access=access, sized=sized, rng=Random(1), now=now, frame_ms=5.0, reports=target.reports
        )
        plugins = [plugin for name in target.filters if end in (plugin := FILTERS[name]).ends]
        filters = [plugin.make(options.get(plugin.options_key, plugin.options()), context) for plugin in plugins]
        return Filtered(_Reporting() if target.reports else Plain(), filters)

    return make_end


@dataclass(frozen=True, slots=True)
class Report:
    """What an assault has shown; all sizes in octets."""

    target: str
    access: str
    shots: int
    seconds: float
    #: processor time of one hostile packet, with making and checking it: first and last part of the run
    first_us: float
    last_us: float
    #: of the attacked end, at the end of each part
    footprints: tuple[int, ...]
    volume: dict[str, int]
    #: of valid flows: octets with the attack and without, transfers that were over, and what went wrong
    octets: int
    calm_octets: int
    transfers: int
    broken: tuple[str, ...]
    #: virtual seconds after the attack until nothing was due any more
    idle_after_s: float | None


def assault(
    target: Target,
    access: Access,
    shots: int,
    clock: Callable[[], float],
    *,
    parts: int = 10,
    compare: bool = True,
    **options: Any,
) -> Report:
    """Attack one end; `clock` gives processor time in seconds, `options` are Network's.

    `compare`: see what valid flows get without the attack; otherwise that is 0. Raises RuleBrokenError.
    """
    make_end = make_ends(target, sized=isinstance(access, Objects))
    network = Network(make_end, access, attacked=target.end, **options)
    times, footprints = [], []
    for part in range(parts):
        begun = clock()
        network.run(shots * (part + 1) // parts - network.shots)
        times.append(clock() - begun)
        footprints.append(footprint(network.attacked.checked.link))
    ended_at = network.clock.now
    calm = Network(make_end, access, attacked=target.end, **options)
    calm.run_calm(ended_at if compare else 0)
    idle_at = network.settle()
    stories = network.stories.values()
    return Report(
        str(target),
        type(access).__name__,
        network.shots,
        ended_at / SECOND,
        times[0] * 1e6 * parts / shots,
        times[-1] * 1e6 * parts / shots,
        tuple(footprints),
        asdict(network.attacked.checked.volume),
        network.octets,
        calm.octets,
        sum(len(story.finished_at) for story in stories),
        tuple(what for story in stories for what in story.broken),
        None if idle_at is None else (idle_at - ended_at) / SECOND,
    )
