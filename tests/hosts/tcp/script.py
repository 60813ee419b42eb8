"""A connection driven by a script in virtual time, in the manner of packetdrill.

The script plays the peer and the application of one `Connection`. Both directions are written in the same words,
sequence numbers relative to each side's SYN, times in ms since the script began:

    s = script(NEWRENO)                                              # connected, 100 ms of round trip
    s.write(4000, sends=["1:1001", "1001:2001"])                     # these leave at once, and nothing else
    s.inject(200, "ack 2001", sends=["2001:3001", "3001:4001"])      # a segment comes, after what was due
    s.expect(1200, "2001:3001")                                      # and this leaves at 1200 ms, by the timer

`sends=...` takes whatever leaves, and so does `...` behind the segments of a list. What leaves without `sends` must be
expected before the next segment comes. `state`, `cwnd`, `ssthresh` and counters are those of the connection then:

    s.close(sends=["F 4001:4001"], state="FIN-WAIT-1")

Scripts that begin alike stand in a table of text (`by_script`): a name, what its connection has of its own, and steps.
`<` is `inject`, `>` behind a time (or several) `expect`; behind `|` is what the connection has then:

    an acknowledgement that opens the window [initial_window=2]
        write 4000 > 1:1001, 1001:2001
        # a comment
        200 < ack 2001 > 2001:3001, 3001:4001 | cwnd 4000, ssthresh none
        1200 > 2001:3001
        close > nothing | not closed

A segment is `[SFREW] LEFT:RIGHT [ack N] [win N] [sack L:R ...] [ts VAL/ECR] [mss N] [wscale N] [sackok] [smart L:R]
[smartok] [eln] [ECT0|CE]`: S, F and so on are flags; ACK is set wherever a number is given or, on injected segments,
known; PSH is not looked at. An expected segment is compared in what the script says of it; flags, payload, SACK, SMART,
ELN, ECN and what only a SYN carries (but for the MSS) are compared even when it says nothing of them.
"""

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from textwrap import dedent
from types import EllipsisType
from typing import Any

import pytest

from common.sequence import MASK
from common.units import MS
from hosts.tcp.config import TcpConfig
from hosts.tcp.connection import Connection
from hosts.tcp.shared import Shared
from tcpip.options import ELN, SMART_PERMITTED, has_eln, smart_of, smart_option
from tcpip.segment import ACK, CE, CWR, ECE, ECT0, ECT1, FIN, RST, SYN, Flow, Option, Segment, SynOptions

FLOW = Flow(0x0A000001, 40_000, 0x0A000002, 80)
#: nothing optional: each test adds what it is about
PLAIN = TcpConfig().but(
    mss=1000,
    recovery="newreno",
    limited_transmit=False,
    window_scaling=False,
    timestamps=False,
)

_FLAGS = {"S": SYN, "F": FIN, "R": RST, "E": ECE, "W": CWR}
_ECN = {"ECT0": ECT0, "ECT1": ECT1, "CE": CE}
#: what is compared even when the script does not mention it
_ALWAYS = ("flags", "sack", "sackok", "smart", "smartok", "eln", "wscale", "ecn")
_WORD = re.compile(
    r"(?P<flags>[SFREW]+\b)|(?P<range>\d+:\d+)|ack (?P<ack>\d+)|win (?P<win>\d+)|sack (?P<sack>\d+:\d+(?: \d+:\d+)*)"
    r"|ts (?P<ts>\d+/\d+)|mss (?P<mss>\d+)|wscale (?P<wscale>\d+)|(?P<sackok>sackok)"
    r"|smart (?P<smart>\d+:\d+)|(?P<smartok>smartok)|(?P<eln>eln)|(?P<ecn>ECT0|ECT1|CE)"
)

Words = dict[str, str]
#: what leaves at once: these segments, and others where the last is `...`; `...`: anything; None: it is expected later
Sends = Sequence[str | EllipsisType] | EllipsisType | None
#: makes a script: a configuration, and `Script`'s options
MakeScript = Callable[..., "Script"]


def words_of(text: str) -> Words:
    """Read a script's segment."""
    found: Words = {}
    position = 0
    while position < len(text):
        match = _WORD.match(text, position)
        assert match is not None, f"no such word in a segment: {text[position:]!r}"
        found |= {name: value for name, value in match.groupdict().items() if value is not None}
        position = match.end() + 1
    return found


def window_of(
    segments: int, make: MakeScript, config: TcpConfig, nbytes: int = 100_000, peer: str = "mss 1000 sackok"
) -> "Script":
    """The first window, segments of 1000 octets from 1 on, is on its way at 100 ms."""
    s = make(config.but(initial_window=segments), peer=peer)
    s.write(nbytes)
    assert len(s.skip()) == segments
    return s


@dataclass(frozen=True)
class Case:
    """A script of a table: what its connection has of its own, and its steps."""

    options: dict[str, Any]
    steps: list[str]

    def play(self, make: MakeScript, config: TcpConfig, **options: Any) -> None:
        """Make a connection, write the `nbytes` of `options` and skip what leaves, and take every step."""
        options |= self.options
        nbytes = options.pop("nbytes", 0)
        own = {name: options.pop(name) for name in ("peer", "window", "rtt_ms", "connected") if name in options}
        s = make(config.but(**options), **own)
        if nbytes:
            s.write(nbytes)
            assert s.skip()
        for step in self.steps:
            s.take(step)


def by_script(text: str) -> pytest.MarkDecorator:
    """Run a test with each `case` of a table."""
    cases: dict[str, Case] = {}
    # a line that goes deeper belongs to the one before it
    for line in re.sub(r"\n {8,}", " ", dedent(text).strip()).splitlines():
        words = line.strip()
        if not line.startswith(" "):
            name, _, own = words.partition(" [")
            call = ast.parse(f"dict({own.removesuffix(']')})", mode="eval").body
            assert isinstance(call, ast.Call)
            assert name not in cases, name
            case = cases[name] = Case({word.arg or "": ast.literal_eval(word.value) for word in call.keywords}, [])
        elif not words.startswith("#"):
            case.steps.append(words)
    return pytest.mark.parametrize("case", cases.values(), ids=cases)


def _segments(text: str) -> list[Any]:
    """Segments with commas between them; `x3` behind one: three of it."""
    found: list[Any] = []
    for each in filter(None, map(str.strip, text.split(","))):
        words, _, count = each.partition(" x")
        found += [... if words == "..." else words] * int(count or 1)
    return [] if found == ["nothing"] else found


def _value(word: str) -> Any:
    return None if word == "none" else float(word) if word[:1].isdigit() else word


class Script:
    """One `Connection` and the peer the script makes up.

    `iss` and `irs` are our and the peer's initial sequence numbers. `connected` does the handshake: ours is the active
    side, the SYN leaves at 0 and its answer comes at `rtt_ms`. `peer` is what the peer's SYN says in options, and in
    flags where they are more than S.
    """

    def __init__(
        self,
        config: TcpConfig,
        *,
        iss: int = 1000,
        irs: int = 5000,
        peer: str = "mss 1000",
        window: int = 65_535,
        rtt_ms: float = 100,
        connected: bool = True,
        shared: Shared | None = None,
        flow: Flow = FLOW,
    ) -> None:
        self.now = 0
        self.iss, self.irs, self.flow = iss, irs, flow
        self.connection = Connection(config, flow, iss, shared)
        #: the peer's window field, where a segment does not give one
        self.window = window
        #: what has left and was not expected yet: time, words
        self.sent: list[tuple[int, Words]] = []
        self.timeline: list[str] = []
        self._acked: int | None = None
        if connected:
            self.connect()
            [syn] = self.skip()
            assert syn.startswith(("S 0:0", "SEW 0:0"))
            self.inject(rtt_ms, f"S 0:0 ack 1 {peer}")
            self.expect(rtt_ms, "1:1 ack 1")

    # -- the application ----------------------------------------------------------------------------------------

    def connect(self, sends: Sends = None, **after: object) -> None:
        self._note("connect")
        self.connection.connect(self.now)
        self._poll(sends, after)

    def listen(self, **after: object) -> None:
        self._note("listen")
        self.connection.listen()
        self._poll(None, after)

    def write(self, data: int | bytes, sends: Sends = None, **after: object) -> int:
        self._note(f"write {data if isinstance(data, int) else len(data)}")
        taken = self.connection.write(data)
        self._poll(sends, after)
        return taken

    def read(self, most: int = 1 << 30) -> bytes:
        self._note(f"read {min(most, self.connection.readable)}")
        data = self.connection.read(most)
        self._poll()
        return data

    def discard(self, sends: Sends = None) -> int:
        self._note(f"discard {self.connection.readable}")
        count = self.connection.discard()
        self._poll(sends)
        return count

    def close(self, sends: Sends = None, **after: object) -> None:
        self._note("close")
        self.connection.close(self.now)
        self._poll(sends, after)

    def abort(self, sends: Sends = None) -> None:
        self._note("abort")
        self.connection.abort(self.now)
        self._poll(sends)

    # -- the network --------------------------------------------------------------------------------------------

    def inject(self, at_ms: float, *segments: str, sends: Sends = None, **after: object) -> None:
        """Let segments come at `at_ms`, after whatever was due until then, which must have been expected."""
        self.run_to(at_ms)
        self._nothing_left()
        for text in segments:
            self._note(f"< {text}")
            self.connection.handle_segment(self._segment(words_of(text)), self.now)
            self._poll()
        self._take(sends, after)

    def expect(self, at_ms: float, *segments: str | EllipsisType, **after: object) -> None:
        """Jump to `at_ms`; since the last expectation exactly these segments have left, and at that time."""
        self.run_to(at_ms)
        wanted = [(round(at_ms * MS), words_of(text)) for text in segments if text is not ...]
        came, self.sent = self.sent, []
        open_ended = ... in segments and len(came) >= len(wanted)
        if not (open_ended or len(came) == len(wanted)) or not all(map(_fits, came, wanted)):
            self._fail([f"{at_ms:10.3f} > {text}" for text in segments] or ["nothing"], came)
        self._take(None, after)

    def skip(self) -> list[str]:
        """Expect nothing in particular of what has left; return it."""
        came, self.sent = self.sent, []
        return [_text(words) for _, words in came]

    def run_to(self, at_ms: float) -> None:
        """Jump from deadline to deadline up to `at_ms`."""
        end = round(at_ms * MS)
        assert end >= self.now, f"the script goes back from {self.now / MS} to {at_ms} ms"
        while (at := self.connection.next_deadline()) is not None and at <= end:
            # early is a no-op, and asking again changes nothing
            if at - 1 > self.now:
                self.connection.handle_deadline(at - 1)
                assert self.connection.next_deadline() == at
                self.now = at - 1
                self._poll()
            assert at >= self.now, self._told(f"deadline {at} lies before {self.now}")
            self.now = at
            self.connection.handle_deadline(at)
            self._poll()
            following = self.connection.next_deadline()
            assert following is None or following > at, self._told("a deadline that does not go away would spin")
        self.now = end

    def measure(self, *rtts_ms: float, from_ms: float = 0) -> "Script":
        """Have the connection measure these round-trip times, one segment after the other, at `from_ms` or now."""
        self.run_to(max(from_ms, self.now / MS))
        for rtt_ms in rtts_ms:
            self.write(1000, sends=...)
            self.inject(self.now / MS + rtt_ms, f"ack {self.connection.bytes_acked + 1001}")
        return self

    @staticmethod
    def octets(left: int, right: int) -> bytes:
        """What the peer's stream has at these numbers: no two stretches of it are alike."""
        return b"".join(number.to_bytes(4) for number in range(left // 4, right // 4 + 1))[left % 4 :][: right - left]

    def take(self, step: str) -> None:
        """Take a step of a table's script."""
        told, _, after = step.partition("|")
        what, arrow, sent = told.partition(">")
        sends: Sends = None if not arrow else ... if sent.strip() == "..." else _segments(sent)
        at, comes, segments = what.partition("<")
        verb, *arguments = at.split()
        if comes:
            self.inject(float(verb), *_segments(segments), sends=sends)
        elif verb[0].isdigit():
            for each in (verb, *arguments):
                self.run_to(float(each))
                if isinstance(sends, list):
                    self.expect(float(each), *sends)
        else:
            getattr(self, verb)(*map(int, arguments), **({"sends": sends} if arrow else {}))
        for each in filter(None, map(str.strip, after.split(","))):
            name, _, value = each.removeprefix("not ").partition(" ")
            found = self._found(name)
            if value:
                assert found == _value(value), self._told(f"expected: {each}, found: {found}")
            else:
                assert bool(found) is not each.startswith("not "), self._told(f"expected: {each}, found: {found}")

    def _found(self, name: str) -> Any:
        """What the script, the connection, its counters or its recovery have of this name."""
        for holder in (self, self.connection, self.connection.counters, self.connection._sender.recovery):
            if hasattr(holder, name):
                value = getattr(holder, name)
                return value() if callable(value) else value
        raise AssertionError(f"no connection has {name}")

    # -- what is asked of it ------------------------------------------------------------------------------------

    @property
    def cwnd(self) -> int:
        return self.connection.cwnd

    @property
    def ssthresh(self) -> int | None:
        return self.connection.ssthresh

    @property
    def rto_ms(self) -> float:
        return self.connection.rto_ns / MS

    @property
    def state(self) -> str:
        return self.connection.state.value

    # -- inside -------------------------------------------------------------------------------------------------

    def _segment(self, words: Words) -> Segment:
        flags = 0
        for letter in words.get("flags", ""):
            flags |= _FLAGS[letter]
        left, right = _edges(words["range"]) if "range" in words else (self._next, self._next)
        ack = int(words["ack"]) if "ack" in words else self._acked
        # a first SYN and a RST carry no acknowledgement unless the script says so
        if ack is not None and ("ack" in words or not flags & (SYN | RST)):
            flags |= ACK
            self._acked = ack
        self._next = max(self._next, right + bool(flags & (SYN | FIN)))
        syn = None
        if flags & SYN:
            syn = SynOptions(
                mss=int(words["mss"]) if "mss" in words else None,
                window_scale=int(words["wscale"]) if "wscale" in words else None,
                sack_permitted="sackok" in words,
            )
        blocks = [_edges(block) for block in words.get("sack", "").split()]
        return Segment(
            self.flow.reversed(),
            self.irs + left & MASK,
            self.iss + ack & MASK if flags & ACK and ack is not None else 0,
            flags,
            int(words.get("win", self.window)),
            right - left,
            self.octets(left, right),
            sack=tuple((self.iss + a & MASK, self.iss + b & MASK) for a, b in blocks),
            timestamps=_edges(words["ts"]) if "ts" in words else None,
            syn=syn,
            extra=self._options(words),
            ecn=_ECN.get(words.get("ecn", ""), 0),
        )

    def _options(self, words: Words) -> tuple[Option, ...]:
        found = [ELN] if "eln" in words else []
        if "smartok" in words:
            found.append(SMART_PERMITTED)
        if "smart" in words:
            left, right = _edges(words["smart"])
            found.append(smart_option(self.iss + left & MASK, right - left))
        return tuple(found)

    _next = 0

    def _words(self, segment: Segment) -> Words:
        left = segment.seq - self.iss & MASK
        words = {
            "flags": "".join(letter for letter, bit in _FLAGS.items() if segment.flags & bit),
            "range": f"{left}:{left + segment.length}",
        }
        if segment.flags & ACK:
            words["ack"] = str(segment.ack - self.irs & MASK)
        words["win"] = str(segment.window)
        if segment.sack:
            words["sack"] = " ".join(f"{a - self.irs & MASK}:{b - self.irs & MASK}" for a, b in segment.sack)
        if segment.timestamps is not None:
            words["ts"] = f"{segment.timestamps[0]}/{segment.timestamps[1]}"
        if segment.syn is not None:
            options = segment.syn
            words |= {"mss": str(options.mss)} if options.mss is not None else {}
            words |= {"wscale": str(options.window_scale)} if options.window_scale is not None else {}
            words |= {"sackok": "sackok"} if options.sack_permitted else {}
        if has_eln(segment):
            words["eln"] = "eln"
        if SMART_PERMITTED in segment.extra:
            words["smartok"] = "smartok"
        if (cause := smart_of(segment)) is not None:
            words["smart"] = ":".join(str(edge - self.irs & MASK) for edge in cause)
        words["ecn"] = ("", "ECT1", "ECT0", "CE")[segment.ecn]
        return {name: value for name, value in words.items() if value}

    def _take(self, sends: Sends, after: dict[str, object]) -> None:
        if sends is ...:
            self.sent = []
        elif sends is not None:
            self.expect(self.now / MS, *sends)
        found = {name: self._found(name) for name in after}
        assert found == after, self._told(f"expected: {after}, found: {found}")

    def _poll(self, sends: Sends = None, after: dict[str, object] | None = None) -> None:
        while (segment := self.connection.poll_segment(self.now)) is not None:
            assert segment.flow == self.flow
            words = self._words(segment)
            self.sent.append((self.now, words))
            self._note(f"> {_text(words)}")
        assert self.connection.poll_segment(self.now) is None, self._told("None was not the end")
        self._take(sends, after or {})

    def _nothing_left(self) -> None:
        if self.sent:
            self._fail(["nothing before the next segment comes"], self.sent)

    def _note(self, text: str) -> None:
        self.timeline.append(f"{self.now / MS:10.3f} {text}")

    def _told(self, what: str) -> str:
        return "\n".join((what, "", "timeline (ms):", *self.timeline))

    def _fail(self, wanted: list[str], came: list[tuple[int, Words]]) -> None:
        got = [f"{at / MS:10.3f} > {_text(words)}" for at, words in came] or ["nothing"]
        raise AssertionError(self._told("\n".join(("expected:", *wanted, "came:", *got))))


def _edges(text: str) -> tuple[int, int]:
    left, right = re.split("[:/]", text)
    return int(left), int(right)


def _text(words: Words) -> str:
    bare = ("flags", "range", "sackok", "smartok", "eln", "ecn")
    return " ".join(value if name in bare else f"{name} {value}" for name, value in words.items())


def _fits(came: tuple[int, Words], wanted: tuple[int, Words]) -> bool:
    (at, words), (due, stated) = came, wanted
    if at != due or any(words.get(name) != value for name, value in stated.items()):
        return False
    left, right = _edges(words["range"])
    if "range" not in stated and left != right:
        return False
    return all(name in stated for name in _ALWAYS if name in words)
