"""Lost frames that are lost packets, where a packet filter sends packets again without the link's knowledge."""

from collections.abc import Hashable
from typing import Final

#: packets remembered that got across, and that did not; the oldest goes. A filter sends again what is still in a window
_ACROSS: Final = 512
_LOST: Final = 128


class LostPackets:
    """Sees the fate of every frame of one direction, with a key that identifies the packet."""

    def __init__(self) -> None:
        self._lost: dict[Hashable, None] = {}
        self._across: dict[Hashable, None] = {}
        #: lost frames whose packet got across, before or after, or is counted as lost already
        self.spared = 0
        #: frames that brought a packet across again
        self.repeats = 0

    def judge(self, packet: Hashable, lost: bool) -> None:
        """Take the next frame's fate."""
        if lost:
            if packet in self._across or packet in self._lost:
                self.spared += 1
            else:
                _remember(self._lost, packet, _LOST)
            return
        if packet in self._across:
            self.repeats += 1
            return
        _remember(self._across, packet, _ACROSS)
        if packet in self._lost:
            del self._lost[packet]
            self.spared += 1


def _remember(packets: dict[Hashable, None], packet: Hashable, limit: int) -> None:
    packets[packet] = None
    if len(packets) > limit:
        del packets[next(iter(packets))]
