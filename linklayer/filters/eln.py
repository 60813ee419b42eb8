"""The ELN marker: dupacks for segments that were lost on the air get the option that says so.

Read first: COMPARISON sections 2.3 and 5.2; Balakrishnan and Katz, "Explicit loss notification and wireless web
performance" (1998), for data from the mobile host; RFC 2018; `tcpip/options.py`.

The marker stands next to the link, behind the IP queue and all other filters. It sees every copy that is put on the
link, in the link's order, and no packet that a queue has dropped. It uses one of three kinds of knowledge:

| kind | data | condition | a segment is lost to corruption when |
|---|---|---|---|
| `forwarded` | for the link | a link without reports | a copy put on the link after its last copy has arrived |
| `given up` | for the link | a link with reports | the link has given up its last copy |
| `holes` | from the link | the base station | a later segment has come across and the segment has not |

Rules kept
- `forwarded` needs a link that keeps the order. SACK blocks, cumulative ACKs and the number of dupacks say which copies
  have arrived: another copy causes each dupack, and it is later than the one before. A SMART option proves nothing:
  the station that adds it knows the segments it has handed to the host, not those the host has answered. So a segment
  out of order is no loss, and a retransmission is lost only when a later copy has arrived.
- Every dupack of a lost segment is marked, from the first one on, until a new copy is under way. Where several segments
  are lost, all but the first may be sent again before an ACK could say that they are lost: ACKs at them are all marked.
- Only ACKs without data are marked, where there is evidence of a hole: a dupack, a SACK block above the acknowledgement
  number, or an ACK that covers a part of the data outstanding when the last hole was found.
- There is one guess per hole, and another one whenever its segment is lost again. The first mark makes it corruption.
  Without a mark the first dupack decides. Congestion: no copy was put on the link, or none before the hole showed or
  before more than three others had passed (`holes`: the segment has come across). Late: all copies may be under way.
- A flow that is met midway counts from its first segment. It begins again behind missing numbers if nothing of it was
  acknowledged yet, and when more of it is outstanding than is kept.

Left out: IPv6 and fragments (`Access` has no view of them), and segments with data: the option may make them longer
than the MTU.
"""

from collections import OrderedDict
from typing import Any, Final

from typing_extensions import override

from common.sequence import MASK
from linklayer.filters.eln_flows import Acks, SeenFlow, SentFlow
from linklayer.filters.filter import ENDS, Cause, Filter, FilterPlugin, Guess
from tcpip.access import Access
from tcpip.options import ELN
from tcpip.segment import ACK, FIN, RST, SYN, Flow, Segment

#: name of the marker in its guesses
NAME: Final = "eln"
#: flows of each direction; segments outstanding of all flows, two entries each
MAX_FLOWS: Final = 128
MAX_ENTRIES: Final = 65_536


class Marker(Filter):
    """Marks ACKs at segments that it knows to be lost on the air.

    `sent`: segments that this end puts on the link; `reports`: those that the link reports as lost, and no others.
    `holes`: segments that are missing in the data from the link.
    """

    def __init__(self, access: Access, *, sent: bool = True, reports: bool = False, holes: bool = False) -> None:
        super().__init__()
        self._access = access
        self._look_at_sent, self._look_at_holes = sent, holes
        self._reports = reports
        #: by the direction of the data, the longest unused first
        self._sent: OrderedDict[Flow, SentFlow] = OrderedDict()
        self._seen: OrderedDict[Flow, SeenFlow] = OrderedDict()
        #: entries of all flows in `_sent`
        self._entries = 0

    @override
    def handle_to_link(self, packet: Any, channel: int, now: int) -> None:
        segment = self._access.view(packet)
        if segment is not None:
            if self._look_at_sent:
                self._note_sent(segment, id(packet))
            seen = self._seen.get(segment.flow.reversed()) if _is_ack(segment) else None
            if seen is not None and seen.handle_ack(segment) is not None and seen.evidence:
                packet = self._judge(packet, segment, seen, seen.cause(), now)
        self._to_link.append((packet, channel))

    @override
    def handle_from_link(self, packet: Any, channel: int, now: int) -> None:
        segment = self._access.view(packet)
        if segment is not None:
            if self._look_at_holes:
                self._note_seen(segment)
            sent = self._sent.get(segment.flow.reversed()) if _is_ack(segment) else None
            if sent is not None:
                entries = sent.entries
                found = sent.handle_ack(segment)
                self._entries += sent.entries - entries
                if found is not None and sent.evidence:
                    packet = self._judge(packet, segment, sent, sent.cause(), now)
        self._from_link.append((packet, channel))

    @override
    def handle_given_up(self, packet: Any, now: int) -> None:
        segment = self._access.view(packet)
        if segment is not None and (sent := self._sent.get(segment.flow)):
            sent.handle_given_up(segment, id(packet))

    def _note_sent(self, segment: Segment, token: int) -> None:
        flow = segment.flow
        sent = self._sent.get(flow)
        takes_numbers = _takes_numbers(segment)
        afresh = segment.flags & SYN or (sent is not None and takes_numbers and sent.outruns(segment))
        if sent is not None and (segment.flags & RST or sent.crowded or afresh):
            del self._sent[flow]
            self._entries -= sent.entries
            sent = None
        if sent is None:
            if not takes_numbers:
                return
            sent = self._sent[flow] = SentFlow(segment.seq, bool(segment.flags & SYN), self._reports)
        self._sent.move_to_end(flow)
        entries = sent.entries
        sent.handle_data(segment, token)
        self._entries += sent.entries - entries
        while len(self._sent) > MAX_FLOWS or (self._entries > MAX_ENTRIES and len(self._sent) > 1):
            _, unused = self._sent.popitem(last=False)
            self._entries -= unused.entries

    def _note_seen(self, segment: Segment) -> None:
        flow = segment.flow
        seen = self._seen.get(flow)
        if seen is not None and segment.flags & RST:
            del self._seen[flow]
            return
        if not _takes_numbers(segment):
            return
        if seen is None or segment.flags & SYN or seen.outruns(segment):
            seen = self._seen[flow] = SeenFlow(segment.seq, bool(segment.flags & SYN))
            if len(self._seen) > MAX_FLOWS:
                self._seen.popitem(last=False)
        self._seen.move_to_end(flow)
        seen.handle_data(segment)

    def _judge(self, packet: Any, segment: Segment, flow: Acks, cause: Cause | None, now: int) -> Any:
        """Note the guess, once; return the packet, marked where the segment was lost on the air."""
        if cause is None:
            return packet
        if (flow.guessed is None and flow.dupack) or (cause == "corruption" and flow.guessed != cause):
            flow.guessed = cause
            self._guesses.append(Guess(now, segment.flow.reversed(), segment.ack & MASK, cause, NAME))
        if cause != "corruption":
            return packet
        marked = self._access.with_option(packet, ELN)
        if marked is None or marked is packet:
            return packet
        self.counters.eln_marks += 1
        return marked


def _takes_numbers(segment: Segment) -> bool:
    return bool(segment.length or segment.flags & (SYN | FIN)) and not segment.flags & RST


def _is_ack(segment: Segment) -> bool:
    return segment.flags & (ACK | SYN | FIN | RST) == ACK and not segment.length


FILTER = (
    FilterPlugin(
        name="eln-ends",
        summary="marks ACKs for segments lost on the air, at each end for the data it sends",
        make=lambda options, context: Marker(context.access, reports=context.reports),
        ends=ENDS,
        position=1,
        guesses=True,
    ),
    FilterPlugin(
        name="eln-base",
        summary="marks ACKs for segments lost on the air, at the base station for both directions",
        make=lambda options, context: Marker(context.access, reports=context.reports, holes=True),
        ends=("base",),
        position=1,
        guesses=True,
    ),
)
