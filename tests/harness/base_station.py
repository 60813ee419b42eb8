"""A packet filter with both of its sides in the test's hands; packets are octets or objects.

Places stand for sequence numbers: the segment at place n has the octets from n * SIZE on, behind `first`. All packets
go through `Checked`, so each script holds its filter to the general rules, too.

A script is a text of words, which `BaseStation.play` plays:

    > 1 2 5+0.5     data from the IP side: the segments at places 1 and 2, and half a segment at 5
    < 1 1- 1*       ACKs over the link: one that passes, one that is held back, one that leaves marked (ELN)
    << 1, >> 1*     the same for data of the other side
    1[4:5][2:3]~4   an ACK with SACK blocks and with SMART's news of segment 4; 1-x3 is three times 1-
    1(seq=9,flags=ACK|FIN)   a segment with other fields
    +20ms           this long passes
    @200ms 1 2      this long passes, and not before its end, to the nanosecond, are 1 and 2 put on the link again
    = 1 2           what was put on the link again since the last such word; at the end of a script it is nothing
    ^ 1 1           ACKs held back that have left since the last such word; likewise
    ? 1:late        what was guessed since the last such word
    x 1             the link has given up the latest segment from place 1
    restart         the filter forgets everything
    rest            nothing is due any more
"""

import re
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import pytest

from common.sequence import MASK
from common.units import MS, SECOND
from linklayer.filters import FILTERS
from linklayer.filters.filter import Cause, Filter, Guess
from linklayer.filters.filtered import Filtered
from linklayer.link import LinkContext
from linklayer.plain import Plain
from tcpip import segment as tcp
from tcpip.access import Access, Objects, Octets
from tcpip.options import has_eln, smart_option
from tcpip.segment import ACK, ECT0, Flow, Option, Segment
from tcpip.wire import emit
from tests.harness.checked import Checked, Passed, Side, tagged

SIZE = 1000
#: from the fixed host to the mobile one
DATA = Flow(0x0A000002, 80, 0x0A000001, 40_000)
ACCESSES: tuple[Access, ...] = (Objects(), Octets())
by_access = pytest.mark.parametrize("access", ACCESSES, ids=lambda access: type(access).__name__)
#: both kinds of packets, and where numbers begin: before the wrap, and before the sign changes
by_first = pytest.mark.parametrize(
    ("access", "first"), [(ACCESSES[0], 2**31 - 2499), (ACCESSES[1], 2**32 - 2500)], ids=["objects-sign", "octets-wrap"]
)


def by_script(scripts: Mapping[str, str]) -> pytest.MarkDecorator:
    """Run a test with each of these scripts, which have names."""
    return pytest.mark.parametrize("script", scripts.values(), ids=scripts)


Places = tuple[float, float]

_SEGMENT = re.compile(
    r"(?P<place>-?[\d.]+)(\+(?P<size>[\d.]+))?(?P<blocks>(\[[\d.]+:[\d.]+\])*)"
    r"(\((?P<fields>[\w|=,]+)\))?(~(?P<smart>[\d.]+))?(?P<fate>[*-]?)(x(?P<times>\d+))?"
)
_TIME = re.compile(r"[+@](\d+)(ns|ms|s)")
_UNITS = {"ns": 1, "ms": MS, "s": SECOND}


def _parts(word: str) -> tuple[dict[str, str], dict[str, int]]:
    """The parts of a script's word for a segment, and its fields."""
    found = _SEGMENT.fullmatch(word)
    assert found is not None, word
    fields = dict(part.split("=") for part in (found["fields"] or "").split(",") if part)
    return found.groupdict(), {
        name: sum(int(getattr(tcp, flag, flag)) for flag in value.split("|")) for name, value in fields.items()
    }


def make_filter(name: str, access: Access) -> Filter:
    plugin = FILTERS[name]
    sized = isinstance(access, Objects)
    context = LinkContext(end=plugin.ends[0], access=access, sized=sized, rng=Random(1), now=0, frame_ms=5.0)
    return plugin.make(plugin.options(), context)


class BaseStation:
    """One filter before a link of bare frames. Time stands still unless the test moves it."""

    def __init__(self, access: Access, make: Callable[[Access], Filter], *, first: int = 1000) -> None:
        self.access, self._make = access, make
        self.first, self.flow, self.now = first, DATA, 0
        #: places of the segments that were put on the link again
        self.repaired: list[float] = []
        #: numbers of ACKs that were held back and have left
        self.released: list[float] = []
        #: by its place, the packet of data that a script has let pass last
        self.latest: dict[float, Any] = {}
        self._guesses: list[Guess] = []
        self.filter = make(access)
        self.checked = Checked(Filtered(Plain(), (self.filter,)), access, probe=1)

    def restart(self) -> None:
        self.filter = self._make(self.access)
        self.checked.link = Filtered(Plain(), (self.filter,))

    def number(self, place: float) -> int:
        return self.first + round(place * SIZE) & MASK

    def place(self, number: int) -> float:
        return (((number - self.first & MASK) ^ 1 << 31) - (1 << 31)) / SIZE

    def segment(self, place: float, size: int = SIZE, flags: int = ACK, **fields: Any) -> Segment:
        payload = bytes(size) if size and isinstance(self.access, Octets) else None
        return Segment(self.flow, self.number(place), 77, flags, 500, size, payload, **{"ecn": ECT0, **fields})

    def acknowledgement(
        self, place: float, *sack: Places, smart: float | None = None, size: int = 0, **fields: Any
    ) -> Segment:
        """A segment of the flow's receiver; `smart`: the place its SMART option names."""
        payload = bytes(size) if size and isinstance(self.access, Octets) else None
        blocks = tuple((self.number(left), self.number(right)) for left, right in sack)
        extra: tuple[Option, ...] = fields.pop("extra", ())
        if smart is not None:
            extra = (*extra, smart_option(self.number(smart), SIZE))
        fields = {"flags": ACK, "window": 500, "seq": 77, **fields}
        return Segment(
            self.flow.reversed(), fields.pop("seq"), self.number(place), fields.pop("flags"), fields.pop("window"),
            size, payload, blocks, extra=extra, **fields,
        )  # fmt: skip

    def send(self, *places: float, **fields: Any) -> list[Any]:
        return [self.from_ip(self.segment(place, **fields)) for place in places]

    def ack(self, place: float, *sack: Places, times: int = 1, **fields: Any) -> list[bool]:
        """Let ACKs come over the link; return which of them have passed."""
        return [self.from_link(self.acknowledgement(place, *sack, **fields)) is not None for _ in range(times)]

    def from_ip(self, segment: Any) -> Any:
        """Let a packet come from the IP side; return it as it leaves for the link."""
        packet = self._packet(segment, "ip")
        passed = self.checked.take(packet, self.now)
        own = next((found for found in passed.to_link if found is packet), None)
        if own is None and passed.to_link:
            # with an option more or less
            own = passed.to_link[-1]
        self._note(passed, own)
        return own

    def from_link(self, segment: Any) -> Any | None:
        """Let a packet come over the link; return it as it leaves for the IP side, or None."""
        packet = self._packet(segment, "link")
        passed = self.checked.take(packet, self.now)
        own = next((found for found in passed.to_ip if found is packet), passed.to_ip[-1] if passed.to_ip else None)
        self._note(passed, own)
        return own

    def wait(self, ns: int) -> list[float]:
        """Let time pass, with all deadlines; return the places that were put on the link again."""
        before, end = len(self.repaired), self.now + ns
        while (at := self.filter.next_deadline()) is not None and at <= end:
            self.now = max(self.now, at)
            self._note(self.checked.expire(self.now), None)
        self.now = end
        return self.repaired[before:]

    def play(self, script: str) -> None:
        """Play a script, as the head of this file describes it."""
        seen = len(self.repaired)
        for step in re.split(r"\s+(?=[<>=?@+^]|x |rest)", script.strip()):
            command, *words = step.split()
            if time := _TIME.fullmatch(command):
                ns = int(time[1]) * _UNITS[time[2]]
                if command[0] == "@":
                    assert self.wait(ns - 1) == [], step
                    ns = 1
                self.wait(ns)
            elif command == "restart":
                self.restart()
            elif command == "rest":
                assert self.filter.next_deadline() is None
            elif command == "x":
                self.filter.handle_given_up(self.latest[float(words[0])], self.now)
            elif command == "^":
                assert [f"{place:g}" for place in self.released] == words, step
                self.released.clear()
            elif command == "?":
                assert [f"{place:g}:{cause}" for place, cause in self.guesses()] == words, step
            elif command in (">", "<", ">>", "<<"):
                put = self.from_ip if command in (">", ">>") else self.from_link
                for word in words:
                    (self._play_data if command in (">", "<<") else self._play_ack)(word, put)
            else:
                assert command == "=", step
            if command[0] in "@=":
                assert [f"{place:g}" for place in self.repaired[seen:]] == words, step
                seen = len(self.repaired)
        assert self.repaired[seen:] == self.released == []

    def _play_data(self, word: str, put: Callable[[Segment], Any]) -> None:
        parts, fields = _parts(word)
        place = float(parts["place"])
        self.latest[place] = put(self.segment(place, round(float(parts["size"] or 1) * SIZE), **fields))

    def _play_ack(self, word: str, put: Callable[[Segment], Any]) -> None:
        parts, fields = _parts(word)
        blocks = [(float(left), float(right)) for left, right in re.findall(r"\[(.+?):(.+?)\]", parts["blocks"])]
        smart = None if parts["smart"] is None else float(parts["smart"])
        for _ in range(int(parts["times"] or 1)):
            left = put(self.acknowledgement(float(parts["place"]), *blocks, smart=smart, **fields))
            fate = "-" if left is None else "*" if has_eln(self.view(left)) else ""
            assert fate == parts["fate"], word

    def guesses(self) -> list[tuple[float, Cause]]:
        found, self._guesses = self._guesses, []
        assert all(guess.flow == self.flow for guess in found)
        return [(self.place(guess.seq), guess.cause) for guess in found]

    def view(self, packet: Any) -> Segment:
        segment = self.access.view(packet)
        assert segment is not None
        return segment

    def _packet(self, segment: Any, side: Side) -> Any:
        octets = isinstance(segment, Segment) and isinstance(self.access, Octets)
        return tagged(emit(segment) if octets else segment, side)

    def _note(self, passed: Passed, own: Any) -> None:
        others = [packet for packet in (*passed.to_link, *passed.to_ip) if packet is not own]
        for segment in map(self.view, others):
            if segment.flow == self.flow.reversed():
                self.released.append(self.place(segment.ack))
            else:
                self.repaired.append(self.place(segment.seq))
        self._guesses += passed.guesses
