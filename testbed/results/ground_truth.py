"""Ground truth: the TCP segments that the link has lost, their causes, and how often guesses of the causes were right.

Rules kept
- The true cause of a guess is the cause of the segment's last loss that this filter has not guessed yet. The medium and
  the queues report the losses. A segment without such a loss was late, or lost elsewhere. The guess "late" does not use
  up a loss.
- Where a scheme repairs losses itself, a segment is lost when the link gives it up; elsewhere when its frame is lost.
- Losses are kept by octets, not by packets, so a retransmission may have other segment boundaries.
- Memory is bounded: MAX_FLOWS directions of connections, MAX_RANGES separate losses of each cause; the oldest go.
  Guesses lie near the highest acknowledged octet, so losses well below a guess are forgotten.

Left out: losses on the wires behind the stations, and losses on a real air.
"""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, get_args

from common.sequence import MASK, unwrap
from linklayer.filters.filter import Cause, Guess, Loss
from linklayer.filters.ranges import Ranges
from linklayer.link import Scheme
from linklayer.station import LossObserver
from tcpip.access import Access
from tcpip.segment import FIN, RST, SYN, Flow

MAX_FLOWS: Final = 128
MAX_RANGES: Final = 256
#: losses this many octets below a guess are still kept
_BEHIND: Final = 1 << 18
CAUSES: Final[tuple[Cause, ...]] = get_args(Cause)

#: filter -> true cause -> guessed cause -> number of guesses
Confusion = Mapping[str, Mapping[Cause, Mapping[Cause, int]]]


@dataclass(slots=True)
class _Losses:
    """The losses of one flow, by cause."""

    #: 32-bit numbers are unwrapped near this one
    near: int
    by_cause: dict[Cause, Ranges] = field(
        default_factory=lambda: {"corruption": Ranges(MAX_RANGES), "congestion": Ranges(MAX_RANGES)}
    )

    def copy(self) -> "_Losses":
        copy = _Losses(self.near)
        copy.by_cause = {cause: ranges.copy() for cause, ranges in self.by_cause.items()}
        return copy


class _Unguessed:
    """The losses that one filter has not guessed yet."""

    def __init__(self) -> None:
        #: the flow that was unused for longest comes first
        self._flows: OrderedDict[Flow, _Losses] = OrderedDict()

    def copy(self) -> "_Unguessed":
        copy = _Unguessed()
        copy._flows.update((flow, losses.copy()) for flow, losses in self._flows.items())
        return copy

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
        """Return the cause of the loss at `seq` (32-bit), "late" without a loss; `take` removes the loss."""
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
        """Forget the losses well below `seq` (32-bit)."""
        losses = self._flows.get(flow)
        if losses is not None:
            number = unwrap(seq, losses.near)
            for ranges in losses.by_cause.values():
                ranges.remove_below(number - _BEHIND)


class GuessScore:
    """Counts guesses by true and guessed cause. Losses and guesses must come in the order of time."""

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
            self._left[guess.by] = self._losses.copy()
        truth = self._left[guess.by].cause(guess.flow, guess.seq, take=guess.cause != "late")
        self._counts[guess.by][truth][guess.cause] += 1
        for losses in (self._losses, *self._left.values()):
            losses.forget_below(guess.flow, guess.seq)

    def confusion(self) -> Confusion:
        """Return the counts."""
        return self._counts


class LossGuessMerger:
    """Merges the losses and guesses of several stations by time; of the same instant, losses come first."""

    def __init__(self, score: GuessScore) -> None:
        self._score = score
        self._waiting: list[Loss | Guess] = []

    def handle(self, event: Loss | Guess) -> None:
        """Take one loss or one guess."""
        self._waiting.append(event)

    def settle(self, until: int) -> None:
        """Score all events before `until`; every station has reported its events up to then."""
        # sorting is stable: equals stay in the order in which they came
        self._waiting.sort(key=lambda event: (event.at, isinstance(event, Guess)))
        due = bisect_left(self._waiting, until, key=lambda event: event.at)
        for event in self._waiting[:due]:
            if isinstance(event, Guess):
                self._score.handle_guess(event)
            else:
                self._score.handle_loss(event)
        del self._waiting[:due]


class LossReporter(LossObserver):
    """Reports the TCP segments that one station loses, and the guesses of its packet filters.

    `scheme` is the link scheme in use.
    """

    def __init__(
        self,
        access: Access,
        scheme: Scheme,
        report_loss: Callable[[Loss], None],
        report_guess: Callable[[Guess], None],
    ) -> None:
        self.scheme, self.repairs = scheme.name, scheme.repairs != "none"
        self._view = access.view
        self._report_loss, self._report_guess = report_loss, report_guess

    def dropped(self, packet: Any, now: int) -> None:
        """Report a packet that a queue had no room for."""
        self._report(packet, "congestion", now)

    def given_up(self, packet: Any, now: int) -> None:
        """Report a packet that the link has lost for good."""
        self._report(packet, "corruption", now)

    def taken(self, packet: Any, at: int) -> None:
        """Report a packet whose frame the medium lost, unless the link repairs that."""
        if not self.repairs:
            self._report(packet, "corruption", at)

    def guessed(self, guess: Guess) -> None:
        """Report a guess."""
        self._report_guess(guess if guess.by else guess._replace(by=self.scheme))

    def _report(self, packet: Any, cause: Cause, at: int) -> None:
        segment = self._view(packet)
        if segment is None or segment.flags & RST:
            return
        numbers = segment.length + bool(segment.flags & SYN) + bool(segment.flags & FIN)
        if numbers:
            self._report_loss(Loss(at, segment.flow, segment.seq, segment.seq + numbers & MASK, cause))
