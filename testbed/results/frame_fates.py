"""The fates of a station's frames in the modelled medium: each becomes a row of the channel trace, and a loss.

Rule kept: under schemes that repair losses themselves, a lost frame is no lost packet.
"""

from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

from channel.errors import Fate
from channel.hop import Arrival
from linklayer.link import FrameError
from testbed.results.frame_trace import FrameTrace, outcome_of
from testbed.results.ground_truth import LossReporter
from testbed.results.lost_packets import LostPackets


@dataclass(frozen=True, slots=True)
class FrameView:
    """What a driver sees in its frames."""

    nbytes: Callable[[Any], int]
    #: the packet. Raises FrameError for a frame of another scheme.
    packet: Callable[[Any], Any]
    #: is equal for frames with the same packet. Raises FrameError likewise.
    key: Callable[[Any], Hashable]


#: frames that are objects
OBJECTS: Final = FrameView(attrgetter("nbytes"), attrgetter("payload"), attrgetter("payload"))


class FrameFates:
    """Takes every frame that one station has sent, with its fate.

    `trace` gets a row of each, `loss_reporter` the losses of packets. `repeats`: packets cross in several frames that
    no acknowledgement settles. All three may change at any time. `frame_ns` returns the time to send a frame of some
    octets.
    """

    def __init__(
        self,
        view: FrameView,
        frame_ns: Callable[[int], int],
        *,
        trace: FrameTrace | None = None,
        loss_reporter: LossReporter | None = None,
        repeats: bool = False,
    ) -> None:
        self._view, self._frame_ns = view, frame_ns
        self.trace, self.loss_reporter, self.repeats = trace, loss_reporter, repeats
        #: used while packets repeat
        self.lost_packets = LostPackets()

    @property
    def needed(self) -> bool:
        """Whether any frame's fate has an effect here at present."""
        reporter = self.loss_reporter
        return self.trace is not None or self.repeats or (reporter is not None and not reporter.repairs)

    def handle(self, arrival: Arrival[Any]) -> None:
        """Take a frame with its fate."""
        frame, lost, reporter = arrival.frame, arrival.verdict.fate is not Fate.INTACT, self.loss_reporter
        if lost and reporter is not None and not reporter.repairs:
            # after a change of schemes, frames of the old scheme still arrive
            with suppress(FrameError):
                reporter.taken(self._view.packet(frame), arrival.arrived_at)
        if self.repeats:
            with suppress(FrameError):
                self.lost_packets.handle_fate(self._view.key(frame), lost)
        self.write(arrival)

    def write(self, arrival: Arrival[Any]) -> None:
        """Write the row of a frame, if there is a trace."""
        if self.trace is not None:
            nbytes = self._view.nbytes(arrival.frame)
            self.trace.write(arrival.sent_at - self._frame_ns(nbytes), nbytes, outcome_of(arrival.verdict))
