"""One end of a link with FEC, with or without ARQ: fragments out, packets in, and acknowledgements both ways."""

from collections.abc import Sized
from random import Random

from linklayer.hybrid.code import FragmentCode
from linklayer.hybrid.frames import Ack, Fragment, Frame
from linklayer.hybrid.receiver import Receiver
from linklayer.hybrid.sender import Sender
from linklayer.link import Link, LinkCounters


class Hybrid(Link):
    """One end. Any `data` of the `total` fragments of a packet bring it across.

    A packet that is not acknowledged after `wait_ns` is sent again, `retries` times at most, and then given up.
    `combine`: fragments of all sendings count together. `in_order`: the receiver delivers packets in the order in which
    they were sent.
    """

    def __init__(
        self,
        code: FragmentCode,
        *,
        data: int,
        total: int,
        retries: int,
        wait_ns: int,
        combine: bool,
        in_order: bool,
        rng: Random,
    ) -> None:
        self._counters = LinkCounters()
        self._sender = Sender(
            code,
            data=data,
            total=total,
            retries=retries,
            wait_ns=wait_ns,
            tag=rng.getrandbits(32),
            counters=self._counters,
        )
        # a packet comes by its last sending, or never
        hold_ns = (retries + 1) * wait_ns
        self._receiver = Receiver(code, combine=combine, in_order=in_order, hold_ns=hold_ns, counters=self._counters)

    def wants_packet(self, channel: int) -> bool:
        """Whether the next packet may be handed over."""
        return self._sender.wants_packet()

    def handle_packet(self, packet: Sized, channel: int) -> None:
        """Take one packet. Raises RuntimeError, and changes nothing, when none is wanted."""
        self._sender.handle_packet(packet)

    def poll_frame(self, now: int) -> Frame | None:
        """Return the next frame, or None."""
        ack = self._receiver.poll_ack()
        return self._sender.poll(now) if ack is None else ack

    def handle_frame(self, frame: Frame, now: int) -> None:
        """Take one frame."""
        if isinstance(frame, Fragment):
            self._receiver.handle_fragment(frame, now)
        else:
            assert isinstance(frame, Ack)
            self._sender.handle_ack(frame)

    def poll_packet(self) -> tuple[Sized, int] | None:
        """Return the next packet for the IP layer, or None."""
        delivered = self._receiver.delivered
        return (delivered.popleft(), 0) if delivered else None

    def poll_given_up(self) -> Sized | None:
        """Return the next packet that the link has given up, or None."""
        given_up = self._sender.given_up
        return given_up.popleft() if given_up else None

    def next_deadline(self) -> int | None:
        """When `handle_deadline` is due, or None."""
        sending, receiving = self._sender.next_deadline(), self._receiver.next_deadline()
        if sending is None or (receiving is not None and receiving < sending):
            return receiving
        return sending

    def handle_deadline(self, now: int) -> None:
        """Expire what is due; a no-op when early."""
        self._sender.handle_deadline(now)
        self._receiver.handle_deadline(now)

    def end(self, now: int) -> None:
        """Give up packets under way, and release those held."""
        self._sender.end()
        self._receiver.end()

    def counters(self) -> LinkCounters:
        """Return the counters so far."""
        return self._counters
