"""Congestion coherence: dupacks wait for the link's retransmission, unless ECN tells of congestion beside the hole.

Read first: COHERENCE sections 3.3 and 3.4 (its figures 4 and 5); RFC 3168; `dupacks.py`, the machine.

A queue that is about to drop packets marks others first, so a segment that a queue has dropped has marked neighbours.
The context of the missing segment n is {n - 1, n + 1, n + 2}.

| filter | holds | unless |
|---|---|---|
| `cc` | dupacks for data from the link | a segment of the context has CE |
| `cc-sender` | dupacks for data that this end has put on the link | an ACK of the context has ECN-Echo |

Rules kept
- The context of `cc` is the octet before the acknowledgement number, and three segments of the flow's largest size from
  that number on: n, which has not come, and the next two. It is looked at up to the third dupack; a segment that the
  link brings later changes nothing.
- The ACKs of the context are the last new one and the two dupacks behind it. ECN-Echo stays set until the sender has
  answered (RFC 3168 section 6.1.3), so for a round trip behind a mark all holes count as congestion.
- The dupacks of congestion pass, and those held before go on at once.
- The guess is `congestion` or `late`.

Left out: the paper's sender reduces its window once per round trip at most; this TCP is as it is.
"""

from functools import partial
from typing import Final

from linklayer.filters.dupacks import HeldFlow, Hold, HoldOptions, hold_at_one_end
from linklayer.filters.filter import ENDS, FilterPlugin

#: n, n + 1 and n + 2
_CONTEXT_SEGMENTS: Final = 3


class CoherentReceiver(Hold):
    """The filter beside the receiver, or at a node on its side of the link."""

    def _is_congestion(self, flow: HeldFlow) -> bool:
        ack = flow.ack
        return flow.marked.overlaps(ack - 1, ack + _CONTEXT_SEGMENTS * flow.mss)


class CoherentSender(Hold):
    """The filter beside the sender, or at a node on its side of the link."""

    def _is_congestion(self, flow: HeldFlow) -> bool:
        return flow.echo


FILTER = (
    FilterPlugin(
        name="cc",
        summary="at one end: dupacks of data from the link wait, unless CE beside the hole tells of congestion",
        make=partial(hold_at_one_end, CoherentReceiver, sending=False),
        ends=ENDS,
        options_key="hold",
        options=HoldOptions,
        guesses=True,
    ),
    FilterPlugin(
        name="cc-sender",
        summary="at one end: dupacks of data for the link wait, unless ECN-Echo beside the hole tells of congestion",
        make=partial(hold_at_one_end, CoherentSender, receiving=False),
        ends=ENDS,
        options_key="hold",
        options=HoldOptions,
        guesses=True,
    ),
)
