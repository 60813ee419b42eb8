"""The workloads of a scenario in virtual time: what the two agents (`hosts/agent.py`) do on the live tiers.

Rules kept here: the same beginnings, ends and reports as an agent's, and the same records. Every end reports once;
`ended` is called with each report, and with the last one the traffic is `done`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any

from hosts.tcp.config import TcpConfig
from hosts.tcp.connection import Connection
from hosts.workloads import Bulk, OnOffUdp, Short, Workload, sender_of
from hosts.workloads import Host as HostName
from tcpip.segment import Segment
from telemetry.records import FlowRecord, Record, TcpRecord
from testbed.model.applications import (
    Counter,
    Result,
    StreamReceiver,
    StreamSender,
    UdpReceiver,
    UdpSender,
    never_connected,
)
from testbed.model.clock import OBSERVER
from testbed.model.host import Host, Socket
from testbed.model.watch import Watch

#: how long after its sender has given up a receiver waits to hear of it (as `hosts/agent.py`)
_RST_GRACE_NS = 2_000_000_000

Report = dict[str, Any]
Emit = Callable[[Record], None]


class Traffic:
    """Sends `workloads` between the two `hosts` with the TCP each has in `configs`, from `epoch` on, which is not past.

    `ended(report)` is called at every end of a transfer, after which `reports` has it, too; `emit` takes records.
    """

    def __init__(
        self,
        hosts: Mapping[HostName, Host],
        workloads: Sequence[Workload],
        configs: Mapping[HostName, TcpConfig],
        *,
        seed: int,
        epoch: int,
        ended: Callable[[Report], None],
        emit: Emit | None = None,
        watch: Watch | None = None,
    ) -> None:
        self._clock = hosts["h1"].clock
        self._hosts = hosts
        self._configs = configs
        self._seed = seed
        self._epoch = epoch
        self._ended = ended
        self._watch = watch
        self._emit = emit
        self.reports: list[Report] = []
        self._missing = sum(2 * _transfers(work) for work in workloads)
        self._senders: dict[tuple[str, int], StreamSender | UdpSender] = {}
        self._receivers: dict[tuple[str, int], StreamReceiver | UdpReceiver] = {}
        self._counters: dict[str, Counter] = {}
        self._meters: dict[str, _Meter] = {}
        #: octets written on each connection, for the receiver to be compared with
        self._written: dict[tuple[str, int], int] = {}
        self._accepted: dict[str, int] = {}
        self._at_duration: dict[str, int] = {}
        for work in workloads:
            self._receive(work)
        for work in workloads:
            self._clock.at(self._at(work.start_s), self._start, work)

    @property
    def done(self) -> bool:
        """Whether every end has reported."""
        return self._missing == 0

    @property
    def nbytes(self) -> int:
        """Payload octets received until now, all flows together."""
        return sum(counter.nbytes for counter in self._counters.values())

    def sending(self) -> list[Connection]:
        """The connections on which data is being sent."""
        return [sender.connection for sender in self._senders.values() if isinstance(sender, StreamSender)]

    def stop(self) -> None:
        """End what still runs; its ends report."""
        for flow in [*self._senders.values(), *self._receivers.values()]:
            flow.abort("stopped")

    def sample(self) -> None:
        """Emit a record of every connected sender and every flow that is being received."""
        if self._emit is not None:
            for meter in self._meters.values():
                meter.sample()

    def _at(self, seconds: float) -> int:
        return self._epoch + int(seconds * 1e9)

    # -- receiving -------------------------------------------------------------------------------------------

    def _receive(self, work: Workload) -> None:
        sender = sender_of(work)
        receiver: HostName = "h2" if sender == "h1" else "h1"
        host = self._hosts[receiver]
        for port, flow in work.ports().items():
            watch = self._watch
            counter = self._counters[flow] = Counter(None if watch is None else _delivery_to(watch, flow, self._epoch))
            if self._emit is not None:
                self._meters[flow] = _Meter(flow, sender, receiver, counter, self._since_epoch, self._emit)
            if isinstance(work, OnOffUdp):
                done = partial(self._received, work, flow, 0)
                udp = UdpReceiver(host, port, counter, epoch=self._epoch, done=done)
                self._receivers[flow, 0] = udp
                self._clock.at(self._at(work.start_s + work.duration_s + work.drain_s), udp.abort, None)
                continue
            host.listen(self._configs[receiver], port, partial(self._accept, host, work, flow))
            if isinstance(work, Bulk) and work.duration_s is not None:
                end_s = work.start_s + work.duration_s
                self._clock.at(self._at(end_s), self._mark, flow, OBSERVER)
                # the sender has given up by then, and the RST that says so may be lost as any packet
                given_up_at = self._at(end_s + work.drain_s) + _RST_GRACE_NS
                self._clock.at(given_up_at, partial(self._give_up, work), flow)

    def _accept(self, host: Host, work: Workload, flow: str, socket: Socket) -> StreamReceiver:
        # connections of one flow follow one another, so the order of accepting numbers them
        index = self._accepted.get(flow, 0)
        self._accepted[flow] = index + 1
        self._counting(flow)
        done = partial(self._received, work, flow, index)
        receiver = StreamReceiver(host, socket, self._counters[flow], epoch=self._epoch, done=done)
        self._receivers[flow, index] = receiver
        return receiver

    def _counting(self, flow: str) -> None:
        if flow in self._meters:
            self._meters[flow].start_counting()

    def _give_up(self, work: Bulk, flow: str) -> None:
        receiver = self._receivers.get((flow, 0))
        if receiver is not None:
            receiver.abort("the sender's end was not heard")
        elif flow not in self._accepted:
            # no SYN has come through
            self._accepted[flow] = 1
            self._received(work, flow, 0, never_connected())

    def _mark(self, flow: str) -> None:
        self._at_duration[flow] = self._counters[flow].nbytes

    def _received(self, work: Workload, flow: str, index: int, result: Result) -> None:
        self._receivers.pop((flow, index), None)
        if not isinstance(work, OnOffUdp):
            # there is no content to compare: as much must have been written as was read
            sender = self._senders.get((flow, index))
            written = sender.written if isinstance(sender, StreamSender) else self._written.pop((flow, index), 0)
            result["intact"] = result["bytes"] <= written
        if isinstance(work, Bulk) and work.duration_s is not None:
            result["bytes_at_duration"] = self._at_duration.get(flow, result["bytes"])
        if flow in self._meters:
            last = not isinstance(work, Short) or index + 1 == work.count
            self._meters[flow].end_counting(last)
        self._report("receiver", work, flow, index, result)

    # -- sending ---------------------------------------------------------------------------------------------

    def _start(self, work: Workload) -> None:
        if isinstance(work, Bulk):
            for port, flow in work.ports().items():
                self._connect(work, port, flow, 0)
        elif isinstance(work, Short):
            self._connect(work, work.port, work.flow, 0)
        else:
            host, peer = self._ends(work)
            self._counting(work.flow)
            self._senders[work.flow, 0] = UdpSender(
                host,
                peer.address,
                work,
                # the same numbers as `hosts/udp_flows.py`
                Random(f"{self._seed}/{work.flow}"),
                self._at(work.start_s + work.duration_s),
                epoch=self._epoch,
                done=partial(self._sent, work, work.port, work.flow, 0),
            )

    def _connect(self, work: Bulk | Short, port: int, flow: str, index: int) -> None:
        end_at = drain_ns = None
        if isinstance(work, Bulk) and work.duration_s is not None:
            end_at, drain_ns = self._at(work.start_s + work.duration_s), int(work.drain_s * 1e9)
        host, peer = self._ends(work)
        sender = StreamSender(
            host,
            peer.address,
            port,
            self._configs[sender_of(work)],
            limit=work.bytes,
            end_at=end_at,
            drain_ns=drain_ns,
            epoch=self._epoch,
            tap=None if self._watch is None else _FlowTap(self._watch, flow, self._epoch),
            done=partial(self._sent, work, port, flow, index),
        )
        self._senders[flow, index] = sender
        if flow in self._meters:
            self._meters[flow].sender = sender

    def _ends(self, work: Workload) -> tuple[Host, Host]:
        h1, h2 = self._hosts["h1"], self._hosts["h2"]
        return (h1, h2) if sender_of(work) == "h1" else (h2, h1)

    def _sent(self, work: Workload, port: int, flow: str, index: int, result: Result) -> None:
        if flow in self._meters:
            self._meters[flow].retire()
        self._senders.pop((flow, index), None)
        if not isinstance(work, OnOffUdp):
            self._written[flow, index] = result["bytes"]
        self._report("sender", work, flow, index, result)
        if isinstance(work, Short) and index + 1 < work.count and result["error"] != "stopped":
            next_at = self._clock.now + int(work.gap_ms * 1e6)
            self._clock.at(next_at, partial(self._connect, work, port, flow), index + 1)

    # -- both ------------------------------------------------------------------------------------------------

    def _since_epoch(self) -> int:
        return self._clock.now - self._epoch

    def _report(self, role: str, work: Workload, flow: str, index: int, result: Result) -> None:
        host = sender_of(work) if role == "sender" else ("h2" if sender_of(work) == "h1" else "h1")
        report = {"role": role, "kind": work.kind, "host": host, "flow": flow, "index": index, **result}
        self.reports.append(report)
        self._missing -= 1
        self._ended(report)


class _FlowTap:
    """Shows one flow's segments to the watch."""

    __slots__ = ("_epoch", "_flow", "_watch")

    def __init__(self, watch: Watch, flow: str, epoch: int) -> None:
        self._watch, self._flow, self._epoch = watch, flow, epoch

    def sent(self, segment: Segment, now: int) -> None:
        self._watch.sent(self._flow, segment, now - self._epoch)

    def received(self, segment: Segment, now: int) -> None:
        self._watch.received(self._flow, segment, now - self._epoch)


def _delivery_to(watch: Watch, flow: str, epoch: int) -> Callable[[int, int], None]:
    def delivered(nbytes: int, now: int) -> None:
        watch.delivered(flow, nbytes, now - epoch)

    return delivered


class _Meter:
    """The records about one flow. Counters go on from one connection to the next."""

    __slots__ = (
        "_before",
        "_counter",
        "_counting",
        "_emit",
        "_flow",
        "_hosts",
        "_last",
        "_now",
        "_sampled_at",
        "sender",
    )

    def __init__(
        self, flow: str, sending: str, receiving: str, counter: Counter, now: Callable[[], int], emit: Emit
    ) -> None:
        self._flow, self._hosts, self._counter, self._now, self._emit = flow, (sending, receiving), counter, now, emit
        #: the connection that is sampled
        self.sender: StreamSender | None = None
        #: what earlier connections have counted: octets acknowledged, retransmits, timeouts
        self._before = (0, 0, 0)
        self._sampled_at = -1
        self._counting = False
        #: time and octets of the latest flow record
        self._last = (0, 0)

    def sample(self) -> None:
        """Emit what there is to say now."""
        self._sample_sender()
        self._sample_counter()

    def retire(self) -> None:
        """Emit the last record of a connection."""
        self._sample_sender()
        if self.sender is not None:
            self._before = self._totals(self.sender)
            self.sender = None

    def start_counting(self) -> None:
        """Begin to report what is received; ignored while it does."""
        if not self._counting:
            self._counting = True
            self._last = (self._now(), self._counter.nbytes)

    def end_counting(self, last: bool) -> None:
        """Emit the last record of a connection; `last`: there is no further one."""
        self._sample_counter()
        self._counting = self._counting and not last

    def _totals(self, sender: StreamSender) -> tuple[int, int, int]:
        connection, (acked, retransmits, timeouts) = sender.connection, self._before
        counters = connection.counters
        return (
            acked + connection.bytes_acked,
            retransmits + counters.retransmits,
            timeouts + counters.timeouts,
        )

    def _sample_sender(self) -> None:
        sender, now = self.sender, self._now()
        if sender is None or not sender.connected or now == self._sampled_at:
            return
        self._sampled_at = now
        connection = sender.connection
        srtt_ns = connection.srtt_ns
        bytes_acked, retransmits, timeouts = self._totals(sender)
        self._emit(
            TcpRecord(
                time_ns=now,
                host=self._hosts[0],
                flow=self._flow,
                cwnd_bytes=connection.cwnd,
                ssthresh_bytes=connection.ssthresh,
                srtt_ms=None if srtt_ns is None else srtt_ns / 1e6,
                rto_ms=connection.rto_ns / 1e6,
                bytes_acked=bytes_acked,
                retransmits=retransmits,
                timeouts=timeouts,
            )
        )

    def _sample_counter(self) -> None:
        now, nbytes = self._now(), self._counter.nbytes
        last_at, last_nbytes = self._last
        if not self._counting or now <= last_at:
            return
        self._last = (now, nbytes)
        goodput_bps = (nbytes - last_nbytes) * 8e9 / (now - last_at)
        self._emit(
            FlowRecord(
                time_ns=now, host=self._hosts[1], flow=self._flow, bytes_received=nbytes, goodput_bps=goodput_bps
            )
        )


def _transfers(work: Workload) -> int:
    if isinstance(work, Bulk):
        return work.flows
    return work.count if isinstance(work, Short) else 1
