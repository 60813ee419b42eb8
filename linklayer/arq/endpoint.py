"""One end of a link with ARQ: the sending side of one direction, the receiving side of the other."""

from collections.abc import Sized
from random import Random

from linklayer.arq.frames import SESSIONS, Ack, Frame
from linklayer.arq.receiver import Receiver
from linklayer.arq.sender import Cutter, Sender
from linklayer.link import Link, LinkCounters


class Arq(Link):
    """One end. Acknowledgements go before retransmissions, and these before new packets.

    With a `cutter` packets go in fragments; `combine`: those of all copies count together. The generator draws the
    session's number, by which the peer knows that this end was made anew.
    """

    def __init__(
        self,
        *,
        resend_after_ns: int,
        retries: int,
        window: int,
        in_order: bool,
        rng: Random,
        cutter: Cutter | None,
        combine: bool,
    ) -> None:
        self._sender = Sender(rng.randrange(SESSIONS), resend_after_ns, retries, window, cutter)
        # the last copy of a packet may come so much later than one that was sent behind it
        patience_ns = (retries + 1) * resend_after_ns
        self._receiver = Receiver(in_order, patience_ns, None if cutter is None else cutter.code, combine)

    def wants_packet(self, channel: int) -> bool:
        return self._sender.wants_packet

    def handle_packet(self, packet: Sized, channel: int) -> None:
        """Take one packet. Raises RuntimeError, and changes nothing, when none is wanted."""
        self._sender.handle_packet(packet, channel)

    def poll_frame(self, now: int) -> Frame | None:
        ack = self._receiver.poll_ack()
        return self._sender.poll_data(now) if ack is None else ack

    def handle_frame(self, frame: Frame, now: int) -> None:
        if isinstance(frame, Ack):
            self._sender.handle_ack(frame)
        else:
            self._receiver.handle_data(frame, now)

    def poll_packet(self) -> tuple[Sized, int] | None:
        packets = self._receiver.packets
        return packets.popleft() if packets else None

    def poll_given_up(self) -> Sized | None:
        given_up = self._sender.given_up
        return given_up.popleft() if given_up else None

    def next_deadline(self) -> int | None:
        at, other = self._sender.next_deadline(), self._receiver.next_deadline()
        return at if other is None or (at is not None and at < other) else other

    def handle_deadline(self, now: int) -> None:
        self._sender.handle_deadline(now)
        self._receiver.handle_deadline(now)

    def end(self, now: int) -> None:
        self._sender.end()
        self._receiver.end()

    def counters(self) -> LinkCounters:
        sender, receiver = self._sender, self._receiver
        return LinkCounters(
            packets=sender.packets,
            retransmissions=sender.resent,
            fec_frames=sender.fec_frames,
            useful_bytes=sender.acked_bytes,
            residual_losses=sender.residual_losses,
            session_losses=sender.session_losses,
            abandoned=receiver.abandoned,
            delivered=receiver.delivered,
            delivered_bytes=receiver.delivered_bytes,
            fec_repairs=receiver.fec_repairs,
            duplicates=receiver.duplicates,
            refused=receiver.refused + sender.stale,
            sessions=receiver.sessions,
        )
