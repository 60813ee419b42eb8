"""Counters of an endpoint. They only grow; byte counts are payload octets unless they say otherwise."""

from dataclasses import dataclass


@dataclass(slots=True)
class SenderStats:
    """One endpoint's sending side, all channels."""

    #: packets sent for the first time
    packets: int = 0
    packet_bytes: int = 0
    #: of these, on channels with ARQ
    arq_bytes: int = 0
    retransmissions: int = 0
    fec_frames: int = 0
    syncs: int = 0
    acked: int = 0
    acked_bytes: int = 0
    #: packets given up after the last retransmission
    residual_losses: int = 0
    #: packets dropped because the session ended under them
    session_losses: int = 0
    #: acknowledgements of frames never sent
    refused: int = 0


@dataclass(slots=True)
class ReceiverStats:
    """One endpoint's receiving side, all channels."""

    delivered: int = 0
    delivered_bytes: int = 0
    duplicates: int = 0
    #: packets rebuilt from redundancy
    fec_repairs: int = 0
    #: numbers the sender told us to pass over
    abandoned: int = 0
    #: frames with a damaged body and an intact header
    damaged: int = 0
    acks: int = 0
    #: frames of another session, or with numbers that cannot be
    refused: int = 0
