"""Tells lost packets from lost frames, where packets cross in several frames that no acknowledgement settles."""

from collections.abc import Hashable
from typing import Final

#: limits of remembered packets, that crossed the link and that were lost; the oldest go. Packets repeat within the
#: present window only
_ACROSS: Final = 512
_LOST: Final = 128


class LostPackets:
    """Takes the fate of every frame of one direction, with a key that identifies its packet."""

    def __init__(self) -> None:
        self._lost: dict[Hashable, None] = {}
        self._across: dict[Hashable, None] = {}
        #: lost frames whose packet crossed in another frame, or is already counted as lost
        self.spared = 0
        #: frames whose packet had already crossed
        self.repeats = 0

    def handle_fate(self, packet: Hashable, lost: bool) -> None:
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
