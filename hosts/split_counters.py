"""What a base station that splits TCP connections counts, live and in virtual time."""

from dataclasses import dataclass


@dataclass(slots=True)
class SplitCounters:
    """What it has done so far. docs/runs.md defines every field."""

    #: end-to-end connections, and SYNs there was no room for
    connections: int = 0
    refusals: int = 0
    #: the most octets held of one connection in one direction
    peak_bytes: int = 0
    #: of its own TCP towards the mobile host
    retransmissions: int = 0
    timeouts: int = 0
