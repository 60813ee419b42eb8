"""The results of transfers: each end reports once, when it is over.

Times are ns since the run's start.
"""

from dataclasses import dataclass
from typing import Literal

from hosts.engine.delays import Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class _Result:
    #: payload octets, written or read
    bytes: int
    #: why the transfer did not come to its end, in one line
    error: str | None
    #: of the payload; None in virtual time, where octets are only counted, and of datagrams
    sha256: str | None = None

    @property
    def complete(self) -> bool:
        """Whether the transfer came to its end."""
        return self.error is None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sent(_Result):
    started_ns: int
    finished_ns: int
    #: round trips of its packets, where both hosts have one virtual clock, and of probes
    round_trips: Counts = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Subflow:
    """The sender's counts of one path of an MPTCP connection, as in `TcpSent`; all its subflows together."""

    #: from 1 on
    path: int
    bytes_acked: int
    bytes_sent: int
    retransmits: int
    timeouts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpSent(_Sent):
    """The sending end of a connection: `finished_ns - started_ns` is the transfer time."""

    #: None: never
    connected_ns: int | None
    bytes_acked: int
    #: payload, retransmissions included; 0 before Linux 4.19
    bytes_sent: int
    #: segments
    retransmits: int
    #: 0 before Linux 6.7
    timeouts: int
    #: what it was in place of what was asked for, in one line: of our own TCP another window growth, of MPTCP plain TCP
    fallback: str | None = None
    #: of MPTCP
    subflows: tuple[Subflow, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UdpSent(_Sent):
    """The sending end of a UDP flow."""

    packets: int
    #: packets refused, or too late to be sent
    unsent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Received(_Result):
    #: None: there was no connection
    finished_ns: int | None
    #: None: no octets came
    first_byte_ns: int | None
    last_byte_ns: int | None
    #: whether the octets are those sent; None of datagrams, which may be lost
    intact: bool | None = None
    #: octets read at the end of the flow's duration, where it has one
    bytes_at_duration: int | None = None
    #: one-way delays of its packets; empty where they are not known
    delays: Counts = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpReceived(_Received):
    """The receiving end of a connection."""

    #: None: never
    accepted_ns: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UdpReceived(_Received):
    """The receiving end of a UDP flow. Lost packets: the sender's less these."""

    packets: int
    #: -1 without packets
    highest_sequence: int
    #: one way, None without packets
    delay_ms_mean: float | None
    delay_ms_max: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a program of others tells of its transfer."""

    #: payload octets at the receiver
    bytes: int
    duration_s: float
    #: None: it does not tell; likewise below
    retransmissions: int | None = None
    #: mean round trip
    delay_ms: float | None = None
    #: packets
    lost: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSent(_Sent):
    """The sending end of a program's flow; only the client tells something."""

    told: Told | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramReceived(_Received):
    """The receiving end of a program's flow."""

    told: Told | None


Sent = TcpSent | UdpSent | ProgramSent
Received = TcpReceived | UdpReceived | ProgramReceived


@dataclass(frozen=True, slots=True, kw_only=True)
class EndReport:
    """One end of one transfer is over."""

    host: str
    flow: str
    #: kind of the workload
    kind: str
    #: number of the connection within its flow
    index: int
    result: TcpSent | UdpSent | ProgramSent | TcpReceived | UdpReceived | ProgramReceived

    @property
    def role(self) -> Literal["sender", "receiver"]:
        """Which end it is."""
        return "sender" if isinstance(self.result, _Sent) else "receiver"
