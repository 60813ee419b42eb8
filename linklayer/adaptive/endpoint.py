"""One end of an adaptive link: the sending side of one direction, the receiving side of the other."""

from collections.abc import Sized
from random import Random

from common.units import MS
from linklayer.adaptive.code import Code
from linklayer.adaptive.frames import SESSIONS, Ack, Frame
from linklayer.adaptive.receiver import AckLosses, Receiver
from linklayer.adaptive.sender import Sender
from linklayer.link import Beliefs, Link, LinkCounters


class Adaptive(Link):
    """One end. Acknowledgements go before repairs, and these before new packets.

    The budget is `budget_ns` or, where that is 0, `round_trips` of the link. The generator draws the session's number,
    by which the peer knows that this end was made anew.
    """

    def __init__(self, *, round_trips: float, budget_ns: int, frame_ns: int, code: Code, rng: Random, now: int) -> None:
        self.sender = Sender(
            rng.randrange(SESSIONS),
            code,
            round_trips=round_trips,
            budget_ns=budget_ns,
            frame_ns=frame_ns,
            now=now,
        )
        self._receiver = Receiver(code)
        self._ack_losses = AckLosses()

    def wants_packet(self, channel: int) -> bool:
        return self.sender.wants_packet(channel)

    def handle_packet(self, packet: Sized, channel: int) -> None:
        """Take one packet. Raises RuntimeError, and changes nothing, when none is wanted."""
        self.sender.handle_packet(packet, channel)

    def poll_frame(self, now: int) -> Frame | None:
        ack = self._receiver.poll_ack(now)
        return self.sender.poll_frame(now) if ack is None else ack

    def handle_frame(self, frame: Frame, now: int) -> None:
        if isinstance(frame, Ack):
            self._ack_losses.handle(frame.count)
            self.sender.heard = self._ack_losses.steps
            self.sender.handle_ack(frame, now)
        else:
            self._receiver.handle_frame(frame, now)

    def poll_packet(self) -> tuple[Sized, int] | None:
        packets = self._receiver.packets
        return packets.popleft() if packets else None

    def poll_given_up(self) -> Sized | None:
        given_up = self.sender.given_up
        return given_up.popleft() if given_up else None

    def next_deadline(self) -> int | None:
        at, other = self.sender.next_deadline(), self._receiver.next_deadline()
        return at if other is None or (at is not None and at < other) else other

    def handle_deadline(self, now: int) -> None:
        self.sender.handle_deadline(now)
        self._receiver.handle_deadline(now)

    def end(self, now: int) -> None:
        self.sender.end()
        self._receiver.end()

    def counters(self) -> LinkCounters:
        sender, receiver = self.sender, self._receiver
        return LinkCounters(
            packets=sender.packets,
            retransmissions=sender.resent,
            fec_frames=sender.coded,
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

    def frame_cost(self, loss: float) -> float:
        return self.sender.frame_cost(loss)

    def beliefs(self) -> Beliefs | None:
        sender, loss, budget = self.sender, self.sender.loss, self.sender.budget
        low, high = loss.interval
        return Beliefs(
            loss=loss.loss,
            loss_low=low,
            loss_high=high,
            burst_correlation=loss.clustering,
            rounds_planned=budget.rounds_in(budget.sending_ns),
            budget_ms=budget.budget_ns / MS if budget.budget_ns else None,
            packets=sender.packets,
            rounds=sender.packets + sender.resent,
            frames=sender.packets + sender.resent + sender.coded,
            settled=sender.delivered + sender.residual_losses,
            delivered=sender.delivered,
            in_time=sender.in_time,
            missed=sender.residual_losses,
        )
