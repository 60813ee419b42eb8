"""What TCP's senders knew: their dupacks, and their windows around a transmission.

Rules kept

- A dupack is an ACK without data that repeats the acknowledgement number before it, at a packet with the octet.
- TCP's windows, and its reason to send again, are those of its records: the last before, the first after.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from testbed.exports.evidence import Evidence, numbered
from testbed.exports.futures import Octets
from testbed.exports.rows import Row, Rows
from testbed.exports.story import Dupacks, Reason, Window
from testbed.exports.timeline import Packet, Timeline


class Senders:
    """The senders of a timeline with passings."""

    def __init__(self, timeline: Timeline, octets: Octets, evidence: Evidence) -> None:
        self._octets = octets
        self._evidence = evidence
        self._records = Rows(timeline.records.get("tcp", ()), "flow")

    def dupacks(self, with_it: Sequence[Packet], octet: int, place: str, acked_ns: int | None) -> Iterator[Dupacks]:
        """Yield the dupacks at packets with an octet, which are in order: those before each retransmission together."""
        sendings = [self._evidence.sent_ns(each) for each in with_it]
        first = min(each.offset for each in with_it if each.offset is not None)
        highest = 0
        groups: dict[int, list[tuple[int, Packet]]] = {}
        for at_ns, acked, packet in self._octets.answers(with_it[0].flow, with_it[0].connection or 0):
            if acked_ns is not None and at_ns >= acked_ns:
                break
            again = acked == highest and not packet.length and not numbered(packet)
            if again and at_ns >= sendings[0] and first <= acked <= octet:
                groups.setdefault(bisect_left(sendings[1:], at_ns), []).append((at_ns, packet))
            highest = max(highest, acked)
        total = 0
        for group in groups.values():
            total += len(group)
            eln = sum(packet.eln for _, packet in group)
            yield Dupacks(
                time_ns=group[0][0], place=place, count=len(group), eln=eln, until_ns=group[-1][0], total=total
            )

    def reason(self, packet: Packet) -> Reason | None:
        """Return why a packet was sent again; None: not known."""
        match self._around(packet):
            case (before, after) if after["timeouts"] > before["timeouts"]:
                return "timeout"
            case (before, after) if after["retransmits"] > before["retransmits"]:
                return "loss recovery"
        return None

    def window(self, packet: Packet, place: str, until_ns: int | None = None) -> Window | None:
        """Return the window around the sending of a packet, or from there to a time; None: not known."""
        around = self._around(packet, until_ns)
        if around is None:
            return None
        before, after = around
        return Window(
            time_ns=after["time_ns"],
            place=place,
            since_ns=before["time_ns"],
            cwnd_before=before["cwnd_bytes"],
            cwnd_after=after["cwnd_bytes"],
            ssthresh_after=after["ssthresh_bytes"],
            retransmits=after["retransmits"] - before["retransmits"],
            timeouts=after["timeouts"] - before["timeouts"],
        )

    def _around(self, packet: Packet, until_ns: int | None = None) -> tuple[Row, Row] | None:
        sent_ns = self._evidence.sent_ns(packet)
        return self._records.around(packet.flow, sent_ns, sent_ns if until_ns is None else until_ns)
