"""SLACP: selective-repeat ARQ with FEC on retransmissions, and no retransmission timers.

Read first: the SLACP paper, section 2; docs/slacp.md has the frame formats and every choice the paper leaves open.

    endpoint.py   one end of the link: the next frame, acknowledgements, timers
    session.py    the handshake that keeps sessions apart
    sender.py     one channel's sending half: outstanding packets, verdicts, blocks
    receiver.py   one channel's receiving half: order, duplicates, repair
    fec.py        the erasure code over a block (zfec), and its size-only stand-in
    frames.py     frames as objects;   wire.py   as octets;   describe.py   as words
    config.py, stats.py
"""

from linklayer.slacp.config import ChannelOptions, SlacpConfig, SlacpOptions
from linklayer.slacp.endpoint import Slacp
from linklayer.slacp.fec import Counting, ReedSolomon

__all__ = ["ChannelOptions", "Counting", "ReedSolomon", "Slacp", "SlacpConfig", "SlacpOptions"]
