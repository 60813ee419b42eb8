"""The mobile end's part of SMART, for receivers that do not know SMART: ACKs get the option that names their cause.

Read first: COMPARISON section 2.1 (SMART); tcpip/options.py. The base end uses the option and removes it (`snoop.py`),
or its userspace TCP does (split-smart).

Rules kept
- The cause of an ACK is taken to be the latest data segment handed to the host. ACKs wait for the link, so that segment
  may be younger than the ACK. Where the octet at the acknowledgement number has come as well, the ACK gets no option:
  a later segment named beside that number would declare the octet lost.
- An ACK that has a SMART option keeps it. An ACK with a full header gets none.
- Only pure ACKs are changed: no SYN, FIN or RST, and no data.
"""

from typing import Any, Final

from common.sequence import MASK, unwrap
from linklayer.filters.filter import Filter, FilterPlugin
from linklayer.filters.ranges import Ranges
from tcpip.access import Access
from tcpip.options import smart_of, smart_option
from tcpip.segment import ACK, FIN, RST, SYN, Flow

#: flows remembered, the least recently used is forgotten; and ranges of received octets per flow
MAX_FLOWS: Final = 1024
MAX_RANGES: Final = 32


class _Flow:
    def __init__(self, seq: int) -> None:
        #: unwrapped numbers that have come
        self.come = Ranges(MAX_RANGES)
        #: unwrapped number and length of the latest segment
        self.latest = (seq, 0)


class Tagger(Filter):
    """The mobile end's filter."""

    def __init__(self, access: Access) -> None:
        super().__init__()
        self._access = access
        #: the least recently used first
        self._flows: dict[Flow, _Flow] = {}

    def handle_to_link(self, packet: Any, channel: int, now: int) -> None:
        """Take a packet of the host's: a pure ACK gets the option."""
        segment = self._access.view(packet)
        if segment is not None and segment.flags & (SYN | FIN | RST | ACK) == ACK and not segment.length:
            flow = self._flows.get(segment.flow.reversed())
            if flow is not None and smart_of(segment) is None:
                seq, length = flow.latest
                ack = unwrap(segment.ack, seq)
                if ack not in flow.come:
                    flow.come.remove_below(ack)
                    tagged = self._access.with_option(packet, smart_option(seq & MASK, length))
                    if tagged is not None:
                        packet = tagged
        self._to_link.append((packet, channel))

    def handle_from_link(self, packet: Any, channel: int, now: int) -> None:
        """Take a packet for the host: it passes, and data is remembered."""
        segment = self._access.view(packet)
        if segment is not None:
            if segment.flags & (SYN | RST):
                self._flows.pop(segment.flow, None)
            elif segment.length:
                flow = self._flows.pop(segment.flow, None) or _Flow(segment.seq)
                left = unwrap(segment.seq, flow.latest[0])
                flow.latest = (left, segment.length)
                flow.come.add(left, left + segment.length)
                self._flows[segment.flow] = flow
                if len(self._flows) > MAX_FLOWS:
                    del self._flows[next(iter(self._flows))]
        self._from_link.append((packet, channel))


TAGGER: Final = FilterPlugin(
    name="tagger",
    summary="the mobile end adds SMART options to ACKs",
    make=lambda options, context: Tagger(context.access),
    ends=("mobile",),
)

FILTER = TAGGER
