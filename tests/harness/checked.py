"""One end of a link whose every input and output is looked at, and what a packet filter may never do.

Read first: `linklayer/filters/filter.py` for the contract; RFC 9293 (segments), RFC 5681 section 2 (dupacks).

`Checked` raises `RuleBrokenError` unless each packet leaves at once, in its direction, as the very object that came; or
it has an ELN or SMART option more or less, or fewer SACK blocks, and is otherwise the same, is not signed, and has not
grown if it carries data; or its window is smaller, where the filter limits windows; or it is a pure dupack and was held
back, to leave unchanged some day or never. Any other packet that leaves for the link came from that side before, and is
unchanged. A deadline that was handled is over; one that is handled early changes nothing.
"""

import gc
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from operator import attrgetter
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Final, Literal, NamedTuple

from common.sequence import MASK
from linklayer.filters.filter import Guess
from linklayer.filters.filtered import Filtered
from linklayer.filters.window import SharedWindow
from linklayer.link import Link
from linklayer.plain import PlainFrame
from tcpip.access import Access
from tcpip.options import ELN, SMART_EXID
from tcpip.segment import ACK, FIN, RST, SYN, Flow, Option, Segment

#: where a packet comes from, seen from the end under attack: the IP side or the link
Side = Literal["ip", "link"]

#: attributes of a segment
_FIELDS: Final = (
    *("flow", "seq", "ack", "flags", "window", "length", "payload", "sack", "timestamps", "syn", "extra", "ecn"),
    *("number", "nbytes"),
)
_SACK: Final = 5
_MD5, _AO = 19, 29
_EXPERIMENTAL: Final = 253
#: flows of which the harness remembers the latest ACKs, and how many
_REMEMBERED_FLOWS: Final = 1 << 16
_REMEMBERED_ACKS: Final = 256
#: packets held back of which the harness knows that they may still leave
_REMEMBERED_HELD: Final = 1 << 17
#: calls that a deadline may take until it is over
_MOST_EXPIRIES: Final = 64


class RuleBrokenError(AssertionError):
    """A filter did what no filter may do."""


# -- packets that know where they came from ------------------------------------------------------------------


class TaggedOctets(bytes):
    """Octets that came from `side`; `again`: how often they were put on the link again."""

    side: Side
    again: int
    said: None
    mine: bool


class TaggedSegment(Segment):
    """A segment that came from `side`; `said`: its fields then."""

    __slots__ = ("again", "mine", "said", "side")

    side: Side
    again: int
    said: tuple[Any, ...]
    mine: bool


def tagged(packet: bytes | Segment, side: Side, mine: bool = False) -> Any:
    """Return a copy of a packet that says where it came from, and whether it is of a valid flow."""
    copy: Any
    if isinstance(packet, Segment):
        copy = TaggedSegment(
            packet.flow, packet.seq, packet.ack, packet.flags, packet.window, packet.length, packet.payload,
            packet.sack, packet.timestamps, packet.syn, packet.extra, packet.ecn, packet.number,
        )  # fmt: skip
        copy.said = fields(copy)
    else:
        copy = TaggedOctets(packet)
        copy.said = None
    copy.side, copy.again, copy.mine = side, 0, mine
    return copy


#: what a segment says
fields: Callable[[Segment], tuple[Any, ...]] = attrgetter(*_FIELDS)


# -- one end, with all that goes in and out of it looked at --------------------------------------------------


class Passed(NamedTuple):
    """The outcome of one packet, or of one deadline."""

    #: for the link, in order, retransmissions included
    to_link: tuple[Any, ...]
    to_ip: tuple[Any, ...]
    guesses: tuple[Guess, ...]


class Checked:
    """One end of a link. `probe` is how often (1 in n) a deadline is handled early, to see that nothing happens."""

    def __init__(self, link: Link, access: Access, *, probe: int = 64, retries: int | None = None) -> None:
        self.link = link
        self.access = access
        #: how often what has happened
        self.volume: Counter[str] = Counter()
        #: how often one packet may be put on the link again; None: any number of times
        self.retries = retries
        self._probe = probe
        #: by side and flow: acknowledgement numbers and windows of what came lately, the latest last
        self._acks: OrderedDict[tuple[Side, Flow], OrderedDict[tuple[int, int | None], None]] = OrderedDict()
        #: by its identity: what was held back, and its side
        self._held: OrderedDict[int, tuple[Any, Side]] = OrderedDict()

    def take(self, packet: Any, now: int) -> Passed:
        """Hand over a tagged packet of either side."""
        volume, side = self.volume, packet.side
        volume["packets"] += 1
        view = self.access.view(packet)
        if side == "ip":
            self.link.handle_packet(packet, 0)
        else:
            self.link.handle_frame(PlainFrame(packet), now)
        passed = self._drain(now)
        to_link = self._sort_out(passed.to_link, packet if side == "ip" else None)
        fresh, wrong = (to_link, passed.to_ip) if side == "ip" else (self._first(passed.to_ip, "link"), to_link)
        if wrong:
            raise RuleBrokenError(f"{self._words(packet)} of the {side} side made something new leave there")
        if len(fresh) > 1:
            raise RuleBrokenError(f"{self._words(packet)} of the {side} side came out {len(fresh)} times")
        if fresh:
            self._check_same(packet, fresh[0])
        else:
            self._note_held(packet, view, side)
        if view is not None and view.flags & ACK:
            self._remember(view, side)
        self._maybe_probe(now)
        return passed

    def expire(self, now: int) -> Passed:
        to_link: list[Any] = []
        to_ip: list[Any] = []
        guesses: list[Guess] = []
        for _ in range(_MOST_EXPIRIES):
            at = self.link.next_deadline()
            if at is None or at > now:
                return Passed(tuple(to_link), tuple(to_ip), tuple(guesses))
            self.volume["expiries"] += 1
            self.link.handle_deadline(now)
            passed = self._drain(now)
            if fresh := self._first(passed.to_ip, "link"):
                raise RuleBrokenError(f"a deadline made {fresh} leave")
            if self._sort_out(passed.to_link, None):
                raise RuleBrokenError("a deadline made something new leave for the link")
            to_link += passed.to_link
            to_ip += passed.to_ip
            guesses += passed.guesses
        raise RuleBrokenError(f"next_deadline is still {at} at {now}, handled {_MOST_EXPIRIES} times: it would spin")

    def _drain(self, now: int) -> Passed:
        link = self.link
        to_link, to_ip, guesses = [], [], []
        while (frame := link.poll_frame(now)) is not None:
            to_link.append(frame.payload)
        while (found := link.poll_packet()) is not None:
            to_ip.append(found[0])
        while link.poll_given_up() is not None:
            pass
        if isinstance(link, Filtered):
            while (guess := link.poll_guess()) is not None:
                guesses.append(guess)
                if guess.at > now or not 0 <= guess.seq <= MASK:
                    raise RuleBrokenError(f"at {now}: {guess}")
        self.volume["guesses"] += len(guesses)
        return Passed(tuple(to_link), tuple(to_ip), tuple(guesses))

    def _sort_out(self, packets: Iterable[Any], own: Any) -> list[Any]:
        """Return the packets that leave for the link for the first time; check and count retransmissions."""
        fresh = []
        volume = self.volume
        for packet in self._first(packets, "ip"):
            if packet is own and own is not None:
                own = None
                fresh.append(packet)
                continue
            if not isinstance(packet, TaggedOctets | TaggedSegment):
                fresh.append(packet)
                continue
            if packet.side != "ip":
                raise RuleBrokenError(f"{self._words(packet)} came over the link and goes back there")
            self._check_untouched(packet)
            view = self.access.view(packet)
            if view is None or view.flags & RST or not (view.length or view.flags & (SYN | FIN)):
                raise RuleBrokenError(f"{self._words(packet)} was put on the link again")
            packet.again += 1
            if self.retries is not None and packet.again > self.retries:
                raise RuleBrokenError(f"{self._words(packet)} was put on the link again {packet.again} times")
            volume["retransmissions"] += 1
        return fresh

    def _note_held(self, packet: Any, view: Segment | None, side: Side) -> None:
        self.volume["held_back"] += 1
        self._check_pure_dupack(packet, view, side)
        self._held[id(packet)] = packet, side
        if len(self._held) > _REMEMBERED_HELD:
            self._held.popitem(last=False)

    def _first(self, packets: Iterable[Any], side: Side) -> list[Any]:
        """Return the packets that were not held back; check and count those that were."""
        others = []
        for packet in packets:
            held, from_side = self._held.get(id(packet), (None, side))
            if held is not packet:
                others.append(packet)
                continue
            if from_side != side:
                raise RuleBrokenError(f"{self._words(packet)} goes back where it came from")
            self._check_untouched(packet)
            del self._held[id(packet)]
            self.volume["released"] += 1
        return others

    def _check_same(self, came: Any, leaves: Any) -> None:
        """A packet leaves as it came, but for an option of ours."""
        self._check_untouched(came)
        if leaves is came:
            return
        self.volume["changed"] += 1
        old, new = self.access.view(came), self.access.view(leaves)
        if old is None or new is None:
            raise RuleBrokenError(f"{self._words(came)} became {self._words(leaves)}")
        if any(option.kind in (_MD5, _AO) for option in old.extra):
            raise RuleBrokenError(f"{self._words(came)} is signed and was changed")
        if old.length and new.nbytes > old.nbytes:
            raise RuleBrokenError(f"{self._words(came)} carries data and grew")
        smaller = self._limits_windows and came.side == "ip" and new.window <= old.window
        if smaller and old.window and not new.window:
            raise RuleBrokenError(f"{self._words(came)}: its window was closed")
        if _others(old, smaller) != _others(new, smaller) or not set(new.sack) <= set(old.sack):
            raise RuleBrokenError(f"{self._words(came)} became {self._words(leaves)}")
        if isinstance(came, bytes) and _beyond_segment(came) != _beyond_segment(leaves):
            raise RuleBrokenError(f"{self._words(came)}: its header was changed")

    @property
    def _limits_windows(self) -> bool:
        return isinstance(self.link, Filtered) and any(isinstance(each, SharedWindow) for each in self.link.filters)

    def _check_untouched(self, packet: Any) -> None:
        if packet.said is not None and packet.said != fields(packet):
            raise RuleBrokenError(f"{packet.said} was changed in place: {self._words(packet)}")

    def _remember(self, view: Segment, side: Side) -> None:
        acks = self._acks.get((side, view.flow))
        if acks is None:
            acks = self._acks[side, view.flow] = OrderedDict()
            if len(self._acks) > _REMEMBERED_FLOWS:
                self._acks.popitem(last=False)
        # a SYN's window is of another scale
        window = None if view.flags & SYN else view.window
        acks[view.ack, window] = None
        acks.move_to_end((view.ack, window))
        if len(acks) > _REMEMBERED_ACKS:
            acks.popitem(last=False)
        self._acks.move_to_end((side, view.flow))

    def _check_pure_dupack(self, packet: Any, view: Segment | None, side: Side) -> None:
        """Only a pure ACK that repeats number and window of one that has passed may be held back (RFC 5681 section 2).

        With SACK blocks it is the number alone, and the news is in the blocks (RFC 6675 section 2); of a SYN it is the
        number, too, since its window is of another scale.
        """
        if view is None:
            raise RuleBrokenError(f"{self._words(packet)} was swallowed")
        if view.length or view.flags & (SYN | FIN | RST) or not view.flags & ACK:
            raise RuleBrokenError(f"{view} was swallowed")
        acks = self._acks.get((side, view.flow), ())
        if {(view.ack, view.window), (view.ack, None)}.isdisjoint(acks) and not (
            view.sack and any(view.ack == ack for ack, _ in acks)
        ):
            raise RuleBrokenError(f"{view} was swallowed: the ACKs before were {list(acks)[-5:]}")

    def _maybe_probe(self, now: int) -> None:
        if self.volume["packets"] % self._probe:
            return
        at = self.link.next_deadline()
        if at is not None and at <= now:
            return
        self.link.handle_deadline(now)
        passed = self._drain(now)
        if any(passed) or self.link.next_deadline() != at:
            raise RuleBrokenError(
                f"handle_deadline at {now}, early for {at}: {passed}, then {self.link.next_deadline()}"
            )

    def _words(self, packet: Any) -> str:
        view = self.access.view(packet)
        if view is not None:
            return f"{view.flow} {view}"
        return packet[:80].hex() if isinstance(packet, bytes) else repr(packet)


def _others(segment: Segment, window_too: bool) -> tuple[Any, ...]:
    """What no filter may change; `window_too`: it may change the window, too."""
    window = None if window_too else segment.window
    return (
        segment.flow, segment.seq, segment.ack, segment.flags, window, segment.length, segment.payload,
        segment.timestamps, segment.syn, segment.ecn, segment.number,
        tuple(option for option in segment.extra if not _is_ours(option) and option.kind != _SACK),
    )  # fmt: skip


def _is_ours(option: Option) -> bool:
    return option == ELN or (option.kind == _EXPERIMENTAL and option.data.startswith(SMART_EXID))


def _beyond_segment(octets: bytes) -> tuple[int, ...]:
    """What of a packet is in no segment: DSCP, the fragment field, TTL, reserved bits, the urgent pointer."""
    return (octets[0], octets[1], octets[6], octets[7], octets[8], octets[32] & 15, octets[38], octets[39])


def footprint(*roots: object) -> int:
    """Return the octets of all that can be reached from `roots`, code apart; a packet's size counts in full."""
    seen: set[int] = set()
    waiting: list[Any] = list(roots)
    total = 0
    while waiting:
        item = waiting.pop()
        if id(item) in seen or isinstance(item, type | ModuleType | FunctionType | BuiltinFunctionType):
            continue
        seen.add(id(item))
        total += len(item) if isinstance(item, Segment) else sys.getsizeof(item)
        waiting += gc.get_referents(item)
    return total
