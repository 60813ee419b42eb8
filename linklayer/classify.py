"""Which logical channel a packet takes: by DSCP and by protocol.

Read first: RFC 2474 (DSCP), RFC 3246 (EF), RFC 5865 (VOICE-ADMIT). Packets that cannot wait for a retransmission go
without ARQ; all others are reliable. The scenario names the former: UDP and expedited forwarding by default, so QUIC
needs `protocols` empty.
"""

from dataclasses import dataclass
from typing import Final

#: channel numbers of the default pair
RELIABLE: Final = 0
FAST: Final = 1

UDP: Final = 17
DSCP_VOICE_ADMIT: Final = 44
DSCP_EF: Final = 46


@dataclass(frozen=True, slots=True)
class Classifier:
    """Maps an IP packet to a channel."""

    fast_dscp: frozenset[int] = frozenset({DSCP_VOICE_ADMIT, DSCP_EF})
    fast_protocols: frozenset[int] = frozenset({UDP})

    def channel(self, packet: bytes) -> int:
        """Return the channel for `packet` (IPv4 or IPv6 octets); a packet that cannot be parsed is reliable."""
        if len(packet) < 20:
            return RELIABLE
        version = packet[0] >> 4
        if version == 4:
            dscp, protocol = packet[1] >> 2, packet[9]
        elif version == 6:
            dscp, protocol = (packet[0] & 0xF) << 2 | packet[1] >> 6, packet[6]
        else:
            return RELIABLE
        return self.channel_of(dscp, protocol)

    def channel_of(self, dscp: int, protocol: int) -> int:
        """Return the channel for a packet with this DiffServ code point and IP protocol number."""
        return FAST if dscp in self.fast_dscp or protocol in self.fast_protocols else RELIABLE
