"""The packets that are not settled, the groups that share a round, and the transmissions whose fates are not known."""

from collections.abc import Sized
from typing import Final

NEVER: Final = 1 << 61


class Packet:
    """A packet that was sent and is neither acknowledged nor given up."""

    __slots__ = ("channel", "due_at", "last", "left_behind", "packet", "seq", "settled", "waits")

    def __init__(self, seq: int, packet: Sized, channel: int, due_at: int) -> None:
        self.seq = seq
        self.packet = packet
        self.channel = channel
        #: the last moment at which a frame of it is of use
        self.due_at = due_at
        #: it waits for another round
        self.waits = False
        #: it is in its last round
        self.last = False
        #: no frame of it will be sent again
        self.left_behind = False
        #: acknowledged or given up
        self.settled = False


class Group:
    """The packets that share a round, and the frames sent for them."""

    def __init__(self, channel: int, rounds: int) -> None:
        self.channel = channel
        #: rounds that its members have, this one included
        self.rounds = rounds
        self.members: list[Packet] = []
        #: when its first combination may go, and whether it may
        self.starts_at = NEVER
        self.started = False
        #: the end of its oldest member's time
        self.due_at = NEVER
        #: frames sent, and those of them whose fate is not known
        self.sent = 0
        self.pending = 0
        #: all of its frames are sent
        self.ended = False


class Transmission:
    """A frame under way: of a packet, of a group, of a packet in a group, or a mark."""

    __slots__ = ("group", "nbytes", "packet", "sent_at", "tx")

    def __init__(self, tx: int, sent_at: int, packet: Packet | None, group: Group | None) -> None:
        self.tx = tx
        self.sent_at = sent_at
        self.packet = packet
        self.group = group
        #: octets of the packet, 0 without one
        self.nbytes = 0 if packet is None else len(packet.packet)

    def forget(self) -> None:
        """Keep what it was sent with no longer: its fate has been judged."""
        self.packet = self.group = None


def number(packet: Packet) -> int:
    """Return a packet's number, by which combinations are in order."""
    return packet.seq
