"""Scheme `queued`: bare frames behind the station's IP queue."""

from typing import Any

from linklayer.queues.drop_tail import DropTail
from linklayer.schemes import SCHEMES
from linklayer.schemes.queued import Queued
from linklayer.station import Station, Transmitter


class Narrow(Transmitter):
    """A transmitter that has room for so many frames."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.sent: list[Any] = []

    def has_room(self) -> bool:
        return self.room > 0

    def send(self, frame: Any, now: int) -> bool:
        self.room -= 1
        self.sent.append(frame.payload)
        return True


def test_packets_wait_in_the_ip_queue_in_order_and_beyond_it_are_lost() -> None:
    link = SCHEMES["queued"].make(None, None)  # type: ignore[arg-type]
    assert isinstance(link, Queued)
    radio = Narrow(1)
    station = Station(link=link, queues=(DropTail(limit_packets=2),), transmitter=radio, deliver=lambda packet: None)
    packets = [bytes([number]) for number in range(5)]
    for packet in packets:
        station.handle_packet(packet, 0, 0)
        station.fill(0)
    # one is sent, two wait
    assert radio.sent == packets[:1]
    assert station.congestion_losses == 2
    radio.room = 9
    station.fill(0)
    assert radio.sent == packets[:3]
