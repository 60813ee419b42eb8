"""Records about a host's TCP senders and about its flows."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from mypy_extensions import mypyc_attr
from typing_extensions import override

from hosts.engine.results import Subflow
from hosts.tcp.connection import Connection
from telemetry.records import FlowRecord, TcpRecord

Record = TcpRecord | FlowRecord
Emit = Callable[[Record], None]


@dataclass(frozen=True, slots=True)
class TcpInfo:
    """The state of one connection's sending side, as in the kernel's `struct tcp_info`."""

    cwnd_bytes: int
    ssthresh_bytes: int | None
    #: None before the first sample
    srtt_ms: float | None
    rto_ms: float
    #: without the SYN and, once the connection is half closed, the FIN, which the kernel counts, too
    bytes_acked: int
    retransmits: int
    #: RTO expiries; None before Linux 6.7
    timeouts: int | None
    #: payload, retransmissions included; 0 before Linux 4.19
    bytes_sent: int = 0
    #: sent, and neither acknowledged nor held for lost, headers included; None: not told
    in_flight_bytes: int | None = None
    #: as in `TcpSent`
    fallback: str | None = None
    subflows: tuple[Subflow, ...] = ()


def info_of(connection: Connection) -> TcpInfo:
    """Return the state of a connection of ours."""
    srtt_ns = connection.srtt_ns
    return TcpInfo(
        cwnd_bytes=connection.cwnd,
        ssthresh_bytes=connection.ssthresh,
        srtt_ms=None if srtt_ns is None else srtt_ns / 1e6,
        rto_ms=connection.rto_ns / 1e6,
        bytes_acked=connection.bytes_acked,
        retransmits=connection.counters.retransmits,
        timeouts=connection.counters.timeouts,
        bytes_sent=connection.counters.bytes_sent,
        fallback=connection.fallback,
    )


@dataclass(frozen=True, slots=True)
class _Counted:
    bytes_acked: int = 0
    retransmits: int = 0
    timeouts: int = 0


@mypyc_attr(allow_interpreted_subclasses=True)
class Probe(ABC):
    """Makes records of a host's TCP senders: the common part for the kernel's TCP and ours.

    Rule kept: the counters of a flow never decrease. The counts of finished connections are kept and added.
    """

    def __init__(self, host: str) -> None:
        self._host = host
        self._before: dict[str, _Counted] = {}

    @abstractmethod
    def sample(self, time_ns: int) -> list[TcpRecord]:
        """Return a record for each connected flow; `time_ns` is their time."""

    def record(self, time_ns: int, flow: str, info: TcpInfo) -> TcpRecord:
        """Return the record of one connection's state under a flow's name."""
        before = self._before.get(flow, _Counted())
        return TcpRecord(
            time_ns=time_ns,
            host=self._host,
            flow=flow,
            cwnd_bytes=info.cwnd_bytes,
            ssthresh_bytes=info.ssthresh_bytes,
            srtt_ms=info.srtt_ms,
            rto_ms=info.rto_ms,
            bytes_acked=before.bytes_acked + info.bytes_acked,
            retransmits=before.retransmits + info.retransmits,
            timeouts=before.timeouts + self._timeouts(info),
            in_flight_bytes=info.in_flight_bytes,
        )

    def retire(self, time_ns: int, flow: str, local_port: int, info: TcpInfo) -> TcpRecord | None:
        """Return the last record of a connection, unless there is one of this time. The next connection of the flow
        adds to its counts.
        """
        record = self.record(time_ns, flow, info)
        timeouts = 0 if info.timeouts is None else record.timeouts
        self._before[flow] = _Counted(record.bytes_acked, record.retransmits, timeouts)
        return record

    @abstractmethod
    def _timeouts(self, info: TcpInfo) -> int:
        """Return the RTO expiries to report of a connection."""


class ConnectionProbe(Probe):
    """Samples connections of this process, which count their timeouts: our TCP's, and QUIC's."""

    def __init__(self, host: str) -> None:
        super().__init__(host)
        self._watched: dict[str, Callable[[], TcpInfo | None]] = {}
        #: time of each flow's latest record
        self._sampled_at: dict[str, int] = {}

    def watch(self, flow: str, tell: Callable[[], TcpInfo | None]) -> None:
        """Sample a connection for a flow from now on, in place of the previous one.

        `tell` returns its state, None before it is connected.
        """
        self._watched[flow] = tell

    @override
    def sample(self, time_ns: int) -> list[TcpRecord]:
        records = []
        for flow, tell in self._watched.items():
            info = tell()
            if info is not None and self._sampled_at.get(flow) != time_ns:
                self._sampled_at[flow] = time_ns
                records.append(self.record(time_ns, flow, info))
        return records

    @override
    def retire(self, time_ns: int, flow: str, local_port: int, info: TcpInfo) -> TcpRecord | None:
        self._watched.pop(flow, None)
        record = super().retire(time_ns, flow, local_port, info)
        if self._sampled_at.get(flow) == time_ns:
            return None
        self._sampled_at[flow] = time_ns
        return record

    def _timeouts(self, info: TcpInfo) -> int:
        assert info.timeouts is not None, "these connections count them"
        return info.timeouts


class FlowCounter:
    """The payload octets received under one flow's name, over all its connections, and the records about them."""

    def __init__(
        self, host: str, flow: str, emit: Emit | None = None, see: Callable[[int, int], None] | None = None
    ) -> None:
        self._host, self._flow, self._emit = host, flow, emit
        #: called with the octets so far and the time, whenever octets arrive
        self._see = see
        self.nbytes = 0
        #: whether the flow is open, so that records are emitted
        self.active = False
        #: time and octets of the latest record
        self._before = (0, 0)

    def start(self, time_ns: int) -> None:
        """Begin the records; ignored when they have begun."""
        if not self.active:
            self.active = True
            self._before = (time_ns, self.nbytes)

    def add(self, nbytes: int, now: int) -> None:
        """Count received octets."""
        self.nbytes += nbytes
        if self._see is not None:
            self._see(self.nbytes, now)

    def report(self, time_ns: int) -> None:
        """Emit a record for the time since the previous one; `time_ns` is since the run's start."""
        before_ns, before = self._before
        if not self.active or time_ns <= before_ns or self._emit is None:
            return
        goodput_bps = (self.nbytes - before) * 8e9 / (time_ns - before_ns)
        self._before = (time_ns, self.nbytes)
        self._emit(
            FlowRecord(
                time_ns=time_ns,
                host=self._host,
                flow=self._flow,
                bytes_received=self.nbytes,
                goodput_bps=goodput_bps,
            )
        )
