"""Delivery rate samples: how fast the network has delivered the latest flight of data, and what was lost of it.

Read first: draft-ietf-ccwg-bbr-06 section 4.1, whose section and variable names are used here (it replaces
draft-cheng-iccrg-delivery-rate-estimation); RFC 8985 section 5.2 for `Transmissions`.

Rules: each segment remembers the state of the connection when it was sent (section 4.1.2.2). An ACK, cumulative or
selective, gives one sample, by the segment sent last of those it tells of: the octets delivered since that left, over
the longer of two intervals, that of their ACKs and that of their transmissions. A sample of a time in which the
application had nothing to send says so. Times are in ns, rates in octets per second.

Choices: an interval shorter than the least round trip gives no rate, which filters the ambiguous ACKs of
retransmissions (section 4.1.3.5, the first approach). Without a recovery that tells of each loss (`reports_losses`),
sending a segment again says that it was lost, and a timeout that all are. Without SACK, duplicate ACKs deliver nothing;
the next cumulative ACK does (section 4.1.3.5.1).

Left out: C.pending_transmissions, as nothing waits below TCP here; segments of FEC, and probes of a zero window.
"""

from typing import Final

from hosts.tcp.recovery.transmissions import PacketState, Transmission, Transmissions
from hosts.tcp.send_state import INFINITE, SendState

_SECOND_NS: Final = 1_000_000_000


class RateSample:
    """RS: the sample of one ACK (sections 2.3 and 4.1.2.1.3). `has_data`: the ACK tells of a segment's delivery."""

    __slots__ = (
        "ack_elapsed",
        "delivered",
        "delivery_rate",
        "has_data",
        "interval",
        "is_app_limited",
        "lost",
        "newly_acked",
        "newly_lost",
        "prior_delivered",
        "prior_time",
        "rtt_ns",
        "send_elapsed",
        "tx_in_flight",
    )

    def __init__(self) -> None:
        self.has_data = False
        #: of the segment sent last of those that were sent once; -1: none was
        self.rtt_ns = -1
        #: octets that this ACK tells of, and that were found lost since the last sample
        self.newly_acked = self.newly_lost = 0
        #: octets delivered from the transmission of the segment until now, and lost in that time
        self.delivered = self.lost = 0
        #: C.delivered and its time when the segment was sent, and C.inflight right after
        self.prior_delivered = self.prior_time = self.tx_in_flight = 0
        self.is_app_limited = False
        self.send_elapsed = self.ack_elapsed = self.interval = 0
        #: octets per second; 0: no reliable rate
        self.delivery_rate = 0.0


class DeliveryRate:
    """The estimator of one connection. For each ACK `begin`, `handle_acked` and `handle_block`, then `finish`."""

    def __init__(self, sender: SendState) -> None:
        self._sender = sender
        #: segments sent and not delivered, those that are lost, too
        self.sent = Transmissions()
        #: C.delivered, C.delivered_time, C.first_send_time, C.app_limited (0: not) and C.lost
        self.delivered = 0
        self.delivered_time = self.first_send_time = 0
        self.app_limited = 0
        self.lost = 0
        #: C.min_rtt of the whole connection
        self.min_rtt_ns = sender.rto.srtt_ns or INFINITE
        self._sample = RateSample()
        #: RS.last_acked_packet_id, and the latest transmission with a round-trip time
        self._last_end = self._timed_at = -1
        self._arrived: list[Transmission] = []
        self._newly_lost = 0
        #: the end of the round, and whether the window was full in it and in the one before
        self._round_delivered = 0
        self._limited_now = self._limited_before = False

    @property
    def inflight(self) -> int:
        """C.inflight: octets sent and neither delivered nor lost."""
        return self.sent.in_flight

    @property
    def is_cwnd_limited(self) -> bool:
        """C.is_cwnd_limited: the window was full in the latest round trip (section 2.2)."""
        return self._limited_now or self._limited_before

    # -- section 4.1.2.2 -------------------------------------------------------------------------------------

    def handle_sent(self, start: int, end: int, fresh: bool, now: int) -> None:
        """Take the transmission of [start, end), for the first time or not (OnPacketSent)."""
        sent = self.sent
        if not fresh and not self._sender.recovery.reports_losses:
            self.handle_lost(start, end, now)
        if not sent.in_flight:
            self.first_send_time = self.delivered_time = now
        state = PacketState(self.delivered, self.lost, self.delivered_time, self.first_send_time, self.app_limited != 0)
        segment = sent.handle_sent(start, end, not fresh, now)
        segment.packet = state
        state.tx_in_flight = sent.in_flight
        if sent.in_flight + self._sender.smss > self._sender.growth.cwnd:
            self._limited_now = True

    # -- losses ----------------------------------------------------------------------------------------------

    def handle_lost(self, start: int, end: int, now: int) -> None:
        """Take that the segments of [start, end) in flight are lost."""
        for segment in self.sent.flying_within(start, end):
            self.sent.mark_lost(segment)
            octets = segment.end - segment.start
            self.lost += octets
            self._newly_lost += octets
            self._sender.growth.handle_lost(segment, now)

    def restore(self) -> None:
        """Take that the segments found lost were late."""
        self.sent.restore()

    # -- section 4.1.2.3 -------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin with an ACK (InitRateSample)."""
        self.check_app_limited()
        self._sample = RateSample()
        self._last_end = self._timed_at = -1

    def handle_acked(self, ack: int, now: int) -> None:
        """Take a cumulative acknowledgement."""
        self._deliver(self.sent.advance(ack, self._arrived), now)

    def handle_block(self, start: int, end: int, now: int) -> None:
        """Take a selective acknowledgement."""
        self._deliver(self.sent.handle_block(start, end, self._arrived), now)

    def _deliver(self, octets: int, now: int) -> None:
        """UpdateRateSample."""
        if not octets:
            return
        sample, arrived = self._sample, self._arrived
        self.delivered += octets
        self.delivered_time = now
        sample.newly_acked += octets
        for segment in arrived:
            packet = segment.packet
            if packet is None:
                continue
            sent_at = segment.sent_at
            if not segment.again and sent_at > self._timed_at:
                self._timed_at = sent_at
                sample.rtt_ns = now - sent_at
            # IsNewestPacket
            first = self.first_send_time
            if not sample.has_data or sent_at > first or (sent_at == first and segment.end > self._last_end):
                sample.has_data = True
                sample.prior_delivered = packet.delivered
                sample.prior_time = packet.delivered_time
                sample.is_app_limited = packet.is_app_limited
                sample.send_elapsed = sent_at - packet.first_send_time
                sample.ack_elapsed = now - packet.delivered_time
                sample.tx_in_flight = packet.tx_in_flight
                sample.lost = packet.lost
                self._last_end = segment.end
                self.first_send_time = sent_at
        arrived.clear()

    def finish(self, now: int) -> None:
        """End an ACK: the growth gets the sample, if there is one (GenerateRateSample)."""
        # the bubble is acknowledged and gone
        if self.app_limited and self.delivered > self.app_limited:
            self.app_limited = 0
        sample = self._sample
        if not sample.has_data:
            return
        if 0 <= sample.rtt_ns < self.min_rtt_ns:
            self.min_rtt_ns = sample.rtt_ns
        sample.lost = self.lost - sample.lost
        sample.newly_lost, self._newly_lost = self._newly_lost, 0
        sample.interval = max(sample.send_elapsed, sample.ack_elapsed)
        sample.delivered = self.delivered - sample.prior_delivered
        if sample.interval >= self.min_rtt_ns and sample.interval:
            sample.delivery_rate = sample.delivered * _SECOND_NS / sample.interval
        if sample.prior_delivered >= self._round_delivered:
            self._round_delivered = self.delivered
            self._limited_before, self._limited_now = self._limited_now, False
        self._sender.growth.handle_sample(sample, now)

    # -- section 4.1.2.4 -------------------------------------------------------------------------------------

    def check_app_limited(self) -> None:
        """Look whether the application has nothing to send: before it writes, and before an ACK or a timer is taken
        (CheckIfApplicationLimited).
        """
        sender = self._sender
        unsent = sender.end - sender.max
        if (
            sender.nxt >= sender.max
            and (unsent <= 0 or sender.waits_for_ack(unsent))
            and self.sent.in_flight < sender.growth.cwnd
            and not self.sent.lost
        ):
            self.mark_app_limited()

    def mark_app_limited(self) -> None:
        """MarkConnectionAppLimited."""
        self.app_limited = max(self.delivered + self.sent.in_flight, 1)
