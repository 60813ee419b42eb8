"""SLACP's frames in words, for the readers of a capture."""

from common.units import number_of
from linklayer.link import Description, FrameError
from linklayer.slacp import wire
from linklayer.slacp.frames import Ack, Damaged, Data, Fec, Frame, Sync


def describe(octets: bytes) -> Description:
    """Describe a frame, as in `retransmission of packet 17, in block 3`; a damaged frame by its header."""
    try:
        frame = wire.parse(octets)
    except FrameError as error:
        return Description(f"not a frame: {error}", intact=False)
    if isinstance(frame, Damaged):
        return Description(f"damaged, {_remains(octets, frame)}", intact=False)
    return Description(_words(frame), intact=True)


def _words(frame: Frame) -> str:
    if isinstance(frame, Data):
        packet = f"packet {frame.seq}{_on(frame.channel)}"
        if not frame.retransmission:
            return packet
        block = "" if frame.block is None else f", in block {frame.block}"
        return f"retransmission of {packet}{block}"
    if isinstance(frame, Fec):
        number = frame.index - frame.actual + 1
        packets = number_of(frame.actual, "packet")
        return f"FEC {number} of block {frame.block}{_on(frame.channel)} ({packets})"
    if isinstance(frame, Sync):
        return f"SYNC from {frame.base}{_on(frame.channel)}"
    if isinstance(frame, Ack):
        beyond = f" and {frame.received.bit_count()} beyond" if frame.received else ""
        repeat = ", repeated" if frame.repeat else ""
        return f"ACK below {frame.cum}{beyond}{_on(frame.channel)}{repeat}"
    return "HELLO, established" if frame.established else "HELLO"


def _remains(octets: bytes, frame: Damaged) -> str:
    """The words of a damaged frame, from its header alone."""
    kind = octets[0] & 0xF
    if kind == wire.TYPE_DATA:
        again = "retransmission of " if octets[1] & wire.FLAG_RETRANSMISSION else ""
        return f"{again}packet {frame.seq}{_on(frame.channel)}"
    return f"{'FEC' if kind == wire.TYPE_FEC else 'SYNC'}{_on(frame.channel)}"


def _on(channel: int) -> str:
    return f" of channel {channel}" if channel else ""
