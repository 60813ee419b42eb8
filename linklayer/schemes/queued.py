"""Scheme `queued`: frames of `none`, with flow control. The station's IP queue is that of a router before the link.

Where no frame is lost, this is a link whose own repairs show as delay alone (SLOWLINK section 2.1): with
`channel.excess_delay` it keeps the order, and packets wait.
"""

from dataclasses import replace

from linklayer.plain import Plain
from linklayer.schemes.none import NONE


class Queued(Plain):
    """One end of such a link."""

    def __init__(self) -> None:
        super().__init__()
        # of the object: the compiled Plain does not see the class attribute of an interpreted child
        self.flow_control = True


SCHEME = replace(
    NONE,
    name="queued",
    summary="packets cross bare, and wait in the IP queue",
    make=lambda options, context: Queued(),
    label="no repair, flow control",
)
