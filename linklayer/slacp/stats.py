"""Counters of an endpoint. They only grow."""

from dataclasses import dataclass

from linklayer.link import LinkCounters


@dataclass(slots=True)
class SlacpCounters(LinkCounters):
    """The counters of every link, and SLACP's own; all channels."""

    #: frames of ours that the peer acknowledged
    acked: int = 0
    #: frames of ours without a packet, which ask for an acknowledgement
    syncs: int = 0
    #: acknowledgements sent
    acks: int = 0
    #: acknowledgements of frames never sent
    strays: int = 0
