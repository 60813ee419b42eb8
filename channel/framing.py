"""Framing: how many bits a frame occupies on the wire.

Read first: RFC 2684 section 5 and ITU-T I.363.5 (AAL5); DVB-RCS (EN 301 790) carries IP in ATM cells on its
return link, the link of SLACP's measurements.

A framing is a function from a frame's bytes to its bits on the wire. Left out: the framing of the radios,
whose preambles and codes depend on the mode: there the number of samples gives the airtime.
"""

from collections.abc import Callable
from typing import Final

Framing = Callable[[int], int]

#: ITU-T I.363.5: CPCS trailer, octets
AAL5_TRAILER_BYTES: Final = 8
#: RFC 2684 section 5.1: LLC and SNAP headers of a routed packet
LLC_SNAP_BYTES: Final = 8
#: ITU-T I.361: octets of a cell, and of its payload
CELL_BYTES: Final = 53
CELL_PAYLOAD_BYTES: Final = 48


def raw(nbytes: int) -> int:
    """Return the bits of a frame sent as it is."""
    return 8 * nbytes


def aal5(nbytes: int) -> int:
    """Return the bits of a frame in AAL5: trailer added, padded to whole cells."""
    return -(-(nbytes + AAL5_TRAILER_BYTES) // CELL_PAYLOAD_BYTES) * (8 * CELL_BYTES)


def aal5_llc(nbytes: int) -> int:
    """Return the bits of a frame in AAL5 with LLC/SNAP encapsulation, which names the frame's protocol."""
    return aal5(nbytes + LLC_SNAP_BYTES)
