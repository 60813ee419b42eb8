"""A congestion control of aioquic that also counts what it is told.

It is registered under a name of ours, by aioquic's interface for further congestion controls, and changes no decision.
"""

from collections.abc import Iterable
from functools import partial
from types import MethodType
from typing import Any, Final, cast

from aioquic.quic.congestion.base import (
    QuicCongestionControl,
    create_congestion_control,
    register_congestion_control,
)
from aioquic.quic.packet import QuicPacketType
from aioquic.quic.packet_builder import QuicSentPacket
from aioquic.quic.stream import QuicStreamSender
from typing_extensions import override

from hosts.engine.delays import Delays

_PREFIX: Final = "fadelab-"


def counting(name: str) -> str:
    """Return the name under which aioquic has its congestion control `name`, counting."""
    registered = f"{_PREFIX}{name}"
    register_congestion_control(registered, partial(Counting, name))
    return registered


class Counting(QuicCongestionControl):
    """The congestion control `name`, with counts of a connection since its begin."""

    def __init__(self, name: str, *, max_datagram_size: int) -> None:
        # no base's __init__: the state is that of the other
        self._control = create_congestion_control(name, max_datagram_size=max_datagram_size)
        #: stream octets in packets, also those sent again
        self.stream_bytes = 0
        #: packets of which the frames are sent again: held for lost, or probed for after a PTO
        self.lost_packets = 0
        #: a sample per ACK of the newest packet (RFC 9002 section 5.1), delay of the ACK included
        self.round_trips = Delays()

    @property
    def bytes_in_flight(self) -> int:  # type: ignore[override]
        """Octets of packets in flight."""
        return self._control.bytes_in_flight

    @property
    def congestion_window(self) -> int:  # type: ignore[override]
        """The congestion window in octets."""
        return self._control.congestion_window

    @property
    def ssthresh(self) -> int | None:  # type: ignore[override]
        """The slow start threshold in octets; None before the first loss."""
        return self._control.ssthresh

    @override
    def on_packet_acked(self, *, now: float, packet: QuicSentPacket) -> None:
        self._control.on_packet_acked(now=now, packet=packet)

    @override
    def on_packet_sent(self, *, packet: QuicSentPacket) -> None:
        for handler, arguments in packet.delivery_handlers:
            # of CRYPTO frames the stream has no number
            if not isinstance(handler, MethodType) or handler.__func__ is not QuicStreamSender.on_data_delivery:
                continue
            sender = cast(QuicStreamSender, handler.__self__)
            if sender._stream_id is not None:
                self.stream_bytes += arguments[1] - arguments[0]
        self._control.on_packet_sent(packet=packet)

    @override
    def on_packets_expired(self, *, packets: Iterable[QuicSentPacket]) -> None:
        held = list(packets)
        # those of the handshake expire with its keys
        self.lost_packets += sum(packet.packet_type is QuicPacketType.ONE_RTT for packet in held)
        self._control.on_packets_expired(packets=held)

    @override
    def on_packets_lost(self, *, now: float, packets: Iterable[QuicSentPacket]) -> None:
        held = list(packets)
        self.lost_packets += len(held)
        self._control.on_packets_lost(now=now, packets=held)

    @override
    def on_persistent_congestion(self) -> None:
        self._control.on_persistent_congestion()

    @override
    def on_rtt_measurement(self, *, now: float, rtt: float) -> None:
        self.round_trips.add(round(rtt * 1e9))
        self._control.on_rtt_measurement(now=now, rtt=rtt)

    @override
    def get_log_data(self) -> dict[str, Any]:
        return self._control.get_log_data()
