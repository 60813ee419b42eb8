"""Ground truth: what the link has lost of TCP segments and why, and how often guesses at it were right.

Rules kept
- The truth of a guess is the last loss of that segment that this guesser has not guessed yet, by the word of the medium
  and the queues; where there is none the segment was late, or lost elsewhere. Late is no guess of a loss.
- Where a scheme repairs losses itself a segment is lost when the link gives it up; elsewhere when its frame is.
- Octets are followed, not packets, so a retransmission may be cut as it likes.
- Memory is bounded: MAX_FLOWS directions of connections, MAX_RANGES separate losses of each cause, the oldest go. What
  is guessed now lies near what is acknowledged, so losses well below it are forgotten.

Left out: what wires behind the stations lose, and what a real air does.
"""

import heapq
from collections import OrderedDict
from collections.abc import Callable, Mapping
from copy import deepcopy
from itertools import count
from typing import Any, Final, NamedTuple, get_args

from common.sequence import MASK, unwrap
from linklayer.filters.filter import Cause, Guess
from linklayer.filters.ranges import Ranges
from linklayer.station import LossWitness
from tcpip.access import Access
from tcpip.segment import FIN, RST, SYN, Flow

MAX_FLOWS: Final = 128
MAX_RANGES: Final = 256
#: octets below a guess that may be guessed yet
_BEHIND: Final = 1 << 18
CAUSES: Final[tuple[Cause, ...]] = get_args(Cause)

#: filter -> true cause -> guessed cause -> count
Confusion = Mapping[str, Mapping[Cause, Mapping[Cause, int]]]


class Loss(NamedTuple):
    """A copy of a segment that was lost."""

    at: int
    flow: Flow
    #: 32-bit numbers: [seq, end)
    seq: int
    end: int
    #: corruption or congestion
    cause: Cause


class _Losses:
    """The losses of one flow."""

    __slots__ = ("by_cause", "near")

    def __init__(self, seq: int) -> None:
        #: numbers are unwrapped near this one
        self.near = seq
        self.by_cause: dict[Cause, Ranges] = {cause: Ranges(MAX_RANGES) for cause in ("corruption", "congestion")}


class _Unguessed:
    """The losses that one filter has not guessed yet."""

    def __init__(self) -> None:
        #: the longest unused first
        self._flows: OrderedDict[Flow, _Losses] = OrderedDict()

    def add(self, loss: Loss) -> None:
        losses = self._flows.get(loss.flow)
        if losses is None:
            losses = self._flows[loss.flow] = _Losses(loss.seq)
            if len(self._flows) > MAX_FLOWS:
                self._flows.popitem(last=False)
        self._flows.move_to_end(loss.flow)
        losses.near = seq = unwrap(loss.seq, losses.near)
        end = unwrap(loss.end, seq)
        for cause, ranges in losses.by_cause.items():
            if cause == loss.cause:
                ranges.add(seq, end)
            else:
                ranges.remove(seq, end)

    def cause(self, flow: Flow, seq: int, take: bool) -> Cause:
        """Return why the segment that begins at `seq` (32-bit) was lost; `take` it where that is guessed now."""
        losses = self._flows.get(flow)
        if losses is not None:
            number = unwrap(seq, losses.near)
            for cause, ranges in losses.by_cause.items():
                if number in ranges:
                    if take:
                        ranges.remove(number, number + 1)
                    return cause
        return "late"

    def forget_below(self, flow: Flow, seq: int) -> None:
        """Forget losses well below `seq` (32-bit)."""
        losses = self._flows.get(flow)
        if losses is not None:
            number = unwrap(seq, losses.near)
            for ranges in losses.by_cause.values():
                ranges.remove_below(number - _BEHIND)


class Judge:
    """Counts guesses by the true cause; losses and guesses come in the order of time."""

    def __init__(self) -> None:
        self._losses = _Unguessed()
        self._left: dict[str, _Unguessed] = {}
        self._counts: dict[str, dict[Cause, dict[Cause, int]]] = {}

    def handle_loss(self, loss: Loss) -> None:
        """Take a loss."""
        self._losses.add(loss)
        for left in self._left.values():
            left.add(loss)

    def handle_guess(self, guess: Guess) -> None:
        """Take a guess."""
        if guess.by not in self._counts:
            self._counts[guess.by] = {truth: dict.fromkeys(CAUSES, 0) for truth in CAUSES}
            self._left[guess.by] = deepcopy(self._losses)
        truth = self._left[guess.by].cause(guess.flow, guess.seq, take=guess.cause != "late")
        self._counts[guess.by][truth][guess.cause] += 1
        for losses in (self._losses, *self._left.values()):
            losses.forget_below(guess.flow, guess.seq)

    def confusion(self) -> Confusion:
        """Return the counts."""
        return self._counts


class Join:
    """Puts the reports of several stations in the order of time: a loss before a guess of the same instant."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._waiting: list[tuple[int, bool, int, Loss | Guess]] = []
        self._tie = count()

    def handle(self, said: Loss | Guess) -> None:
        """Take one loss or one guess."""
        heapq.heappush(self._waiting, (said.at, isinstance(said, Guess), next(self._tie), said))

    def settle(self, until: int) -> None:
        """Judge all that was before `until`, which every station has told."""
        while self._waiting and self._waiting[0][0] < until:
            said = heapq.heappop(self._waiting)[3]
            if isinstance(said, Guess):
                self._judge.handle_guess(said)
            else:
                self._judge.handle_loss(said)


class Witness(LossWitness):
    """Sees the losses of one station, and reports those of TCP segments; hears the guesses of its packet filters.

    `scheme` and `repairs` are of the link in use. `linklayer/station.py` says when each method is called.
    """

    def __init__(
        self,
        access: Access,
        scheme: str,
        repairs: bool,
        tell_loss: Callable[[Loss], None],
        tell_guess: Callable[[Guess], None],
    ) -> None:
        self.scheme, self.repairs = scheme, repairs
        self._view = access.view
        self._tell_loss, self._tell_guess = tell_loss, tell_guess

    def dropped(self, packet: Any, now: int) -> None:
        """See a packet that a queue had no room for."""
        self._tell(packet, "congestion", now)

    def given_up(self, packet: Any, now: int) -> None:
        """See a packet that the link has lost for good."""
        self._tell(packet, "corruption", now)

    def taken(self, packet: Any, at: int) -> None:
        """See a packet whose frame the medium took; where the link repairs that this is not its end."""
        if not self.repairs:
            self._tell(packet, "corruption", at)

    def guessed(self, guess: Guess) -> None:
        """Hear a guess."""
        self._tell_guess(guess if guess.by else guess._replace(by=self.scheme))

    def _tell(self, packet: Any, cause: Cause, at: int) -> None:
        segment = self._view(packet)
        if segment is None or segment.flags & RST:
            return
        numbers = segment.length + bool(segment.flags & SYN) + bool(segment.flags & FIN)
        if numbers:
            self._tell_loss(Loss(at, segment.flow, segment.seq, segment.seq + numbers & MASK, cause))
