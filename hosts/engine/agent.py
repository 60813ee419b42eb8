"""One host's part of a run: sends and receives the host's workloads, and reports.

Read first: `hosts/workloads/` for begins and ends; `streams.py` and `datagrams.py` for the two ends of a transfer.

Rules kept

- Every end reports once; connections of one flow follow one another, so the order of accepting numbers them.
- Every time in a record or report is ns since the run's start, `go`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from hosts.engine.clock import Clock
from hosts.engine.content import Contents
from hosts.engine.context import Context, ignore
from hosts.engine.datagrams import Datagrams, UdpReceiver, UdpSender
from hosts.engine.delays import Counts
from hosts.engine.probe import FlowCounter
from hosts.engine.programs import ProgramEnd, Programs, Task
from hosts.engine.results import EndReport, Received, Sent, TcpSent, Told
from hosts.engine.streams import Receive, ReceivingEnd, SendingEnd, Transfer, Transport, never_connected
from hosts.workloads import Workload, sender_of

if TYPE_CHECKING:
    from hosts.workloads.onoff_udp import OnOffUdp


class Agent:
    """Sends and receives one host's part of the workloads, over the `transports` that they name.

    `ended(report)` is called for each end of a transfer that is over, `broken(flow, error)` when a connection has
    broken and will begin again after `again_ns` (None: never). `see(flow)` returns a callback for a flow, which gets
    the payload octets so far and the time whenever octets arrive.
    """

    def __init__(
        self,
        context: Context,
        transports: Mapping[str, Transport],
        datagrams: Datagrams,
        *,
        peer: str,
        workloads: Sequence[Workload],
        ended: Callable[[EndReport], None],
        broken: Callable[[str, str], None] = lambda flow, error: None,
        again_ns: int | None = None,
        see: Callable[[str], Callable[[int, int], None]] | None = None,
        programs: Programs | None = None,
        address: str = "",
        namespace: str = "",
    ) -> None:
        self.context = context
        self.clock: Clock = context.clock
        self.again_ns = again_ns
        self.broken = broken
        self._transports, self._datagrams, self._peer = transports, datagrams, peer
        self._programs = programs
        #: of this host and of the other, where programs run
        self.address, self.peer = address, peer
        #: network namespace, empty for that of the process
        self.namespace = namespace
        self._ended = ended
        self._send = [work for work in workloads if sender_of(work) == context.host]
        self._receive = [work for work in workloads if sender_of(work) != context.host]
        self._paused = False
        self._missing = sum(work.transfers for work in workloads)
        self._counters = {
            flow: FlowCounter(context.host, flow, context.emit, None if see is None else see(flow))
            for work in self._receive
            for flow in work.ports().values()
        }
        self._senders: dict[tuple[str, int], SendingEnd | UdpSender] = {}
        self._receivers: dict[tuple[str, int], ReceivingEnd | UdpReceiver] = {}
        self._clients: dict[str, ProgramEnd] = {}
        #: connections accepted, and octets received at the end of the duration, by flow
        self._accepted: dict[str, int] = {}
        #: of own flows, connections that have come about and ended: the receiver numbers those that it accepts
        self._connected: dict[str, int] = {}
        self._marked: dict[str, int] = {}
        #: flows of which an end has reported
        self._reported: set[str] = set()
        #: receivers of the answers to probes
        self._replies: dict[str, UdpReceiver] = {}
        self._awaiting: dict[str, Callable[[Counts], None]] = {}
        for work in self._receive:
            work.bind(self)
        for work in self._send:
            work.bind_sender(self)

    @property
    def done(self) -> bool:
        """Whether all ends have reported."""
        return self._missing == 0

    def go(self, epoch: int) -> None:
        """Start the run at `epoch`: accept from now on, and send at the workloads' times."""
        self.context.epoch = epoch
        for work in self._receive:
            work.expect(self)
        for work in self._send:
            self.clock.at(self.at(work.start_s), work.start, self)

    def pause(self, paused: bool) -> None:
        """Stop the senders' data, or let it go on. TCP still sends its buffers, and durations go on."""
        self._paused = paused
        for sender in self._senders.values():
            sender.pause(paused)

    def stop(self) -> None:
        """End the transfers that still run; their ends report."""
        for end in [*self._senders.values(), *self._receivers.values(), *self._clients.values()]:
            end.abort("stopped")
        for flow in list(self._awaiting):
            self._end_replies(flow)

    def sending(self) -> list[SendingEnd]:
        """Return the sending ends that are open at present."""
        return [sender for sender in self._senders.values() if isinstance(sender, SendingEnd)]

    def sample(self) -> None:
        """Emit a record of every connected sender and of every receiving flow."""
        context = self.context
        for record in context.probe.sample(context.time_ns) if self._send else ():
            context.emit(record)
        for transport in self._transports.values():
            for record in transport.sample(context.time_ns):
                context.emit(record)
        for counter in self._counters.values():
            counter.report(context.time_ns)

    # -- for workloads ---------------------------------------------------------------------------------------

    def at(self, seconds: float) -> int:
        """Return a time of the run on the clock."""
        return self.context.epoch + int(seconds * 1e9)

    def report(self, work: Workload, flow: str, index: int, result: Sent | Received) -> None:
        """Report an end."""
        self._missing -= 1
        self._reported.add(flow)
        self._ended(EndReport(host=self.context.host, flow=flow, kind=work.kind, index=index, result=result))

    def end_counting(self, flow: str) -> None:
        """Stop the records of a received flow, until it begins again."""
        self._counters[flow].active = False

    def mark(self, flow: str) -> None:
        """Remember the octets of a flow received so far."""
        self._marked[flow] = self._counters[flow].nbytes

    def marked(self, flow: str, default: int) -> int:
        """Return the octets of a flow at its mark, or `default`."""
        return self._marked.get(flow, default)

    # reliable transports

    def bind(self, work: Workload, port: int) -> None:
        """Take a port for connections."""
        self._transports[work.transport].bind(port)

    def accept(self, work: Workload, port: int, flow: str) -> None:
        """Receive a flow from all connections to a port."""

        def accepted(receive: Receive) -> ReceivingEnd:
            index = self._accepted.get(flow, 0)
            self._accepted[flow] = index + 1
            content = self._contents(work).incoming(f"{flow}/{index}")
            end = receive(content, self._counters[flow], partial(self._received, work, flow, index))
            if not end.ended:
                self._receivers[flow, index] = end
            return end

        self._transports[work.transport].accept(port, accepted)

    def give_up(self, work: Workload, flow: str) -> None:
        """End a flow's last connection; its sender must have given up by now."""
        index = self._accepted.get(flow, 0)
        end = self._receivers.get((flow, index - 1))
        if isinstance(end, ReceivingEnd):
            end.abort("the sender's end was not heard")
        elif flow not in self._reported:
            # no connection has come about, or none after one that has broken
            self._accepted[flow] = index + 1
            self._received(work, flow, index, never_connected(self._contents(work).incoming(f"{flow}/{index}")))

    def connect(
        self,
        work: Workload,
        port: int,
        flow: str,
        index: int,
        *,
        limit: int | None,
        end_at: int | None = None,
        drain_ns: int | None = None,
        congestion_control: str | None = None,
    ) -> None:
        """Send a flow's transfer number `index`; see `Transfer`."""
        transfer = Transfer(
            flow=flow,
            index=self._connected.get(flow, 0),
            address=(self._peer, port),
            limit=limit,
            end_at=end_at,
            drain_ns=drain_ns,
            congestion_control=congestion_control,
        )
        transport = self._transports[work.transport]
        end = transport.send(transfer, self._paused, partial(self._sent, work, port, flow, index))
        if not end.ended:
            self._senders[flow, index] = end

    # UDP

    def bind_datagrams(self, work: "OnOffUdp") -> None:
        """Take a workload's port for datagrams; those of probes are sent back."""
        receiver = UdpReceiver(
            self.context,
            self._datagrams.receiver(work.port),
            self._counters[work.flow],
            partial(self._received, work, work.flow, 0),
            self._datagrams.sender(self._peer, work.port, work.packet_bytes) if work.beside else None,
        )
        self._receivers[work.flow, 0] = receiver

    def receive_datagrams(self, work: "OnOffUdp", *, start_at: int, end_at: int) -> None:
        """Receive a workload's datagrams until `end_at`; counts begin at `start_at`."""
        receiver = self._receivers[work.flow, 0]
        assert isinstance(receiver, UdpReceiver)
        receiver.start()
        self.clock.at(start_at, self._start_counting, work.flow)
        self.clock.at(end_at, receiver.abort, None)

    def send_datagrams(self, work: "OnOffUdp", *, end_at: int) -> None:
        """Send on/off UDP from now on; see `UdpSender`."""
        end = UdpSender(
            self.context,
            self._datagrams.sender(self._peer, work.port, work.packet_bytes),
            partial(self._sent, work, work.port, work.flow, 0),
            flow=work.flow,
            rate_bps=work.rate_bps,
            on_ms=work.on_ms,
            off_ms=work.off_ms,
            packet_bytes=work.packet_bytes,
            end_at=end_at,
            paused=self._paused,
        )
        if not end.ended:
            self._senders[work.flow, 0] = end

    def bind_replies(self, work: "OnOffUdp") -> None:
        """Take a workload's port for the answers to its datagrams."""
        counter = FlowCounter(self.context.host, work.flow)
        receiver = self._datagrams.receiver(work.port)
        self._replies[work.flow] = UdpReceiver(self.context, receiver, counter, ignore)

    def receive_replies(self, flow: str) -> None:
        """Receive answers from now on."""
        self._replies[flow].start()

    def await_replies(self, flow: str, drain_ns: int, done: Callable[[Counts], None]) -> None:
        """Receive answers for this long; `done` gets the round trips, once, also when the run is stopped before."""
        self._awaiting[flow] = done
        if drain_ns:
            self.clock.at(self.clock.now + drain_ns, self._end_replies, flow)
        else:
            self._end_replies(flow)

    # programs of others

    def require_program(self, task: Task) -> None:
        """Raise HostError when a program is missing."""
        self._the_programs().require(task)

    def serve_program(self, task: Task, ready: str) -> None:
        """Start a server; see `Programs.serve`."""
        self._the_programs().serve(task, ready)

    def run_program(
        self,
        work: Workload,
        task: Task,
        until: int,
        parse: Callable[[str], Told],
        done: Callable[[Told | None, str | None], None],
    ) -> None:
        """Run a client; see `ProgramEnd`."""
        self._clients[work.flow] = ProgramEnd(self._the_programs(), task, until, parse, done)

    def _the_programs(self) -> Programs:
        assert self._programs is not None, "the scenario refuses programs where there are none"
        return self._programs

    def _contents(self, work: Workload) -> Contents:
        return self._transports[work.transport].contents or self.context.contents

    def _end_replies(self, flow: str) -> None:
        done = self._awaiting.pop(flow, None)
        if done is not None:
            replies = self._replies[flow]
            replies.abort(None)
            done(replies.delays.counts())

    def _start_counting(self, flow: str) -> None:
        self._counters[flow].start(self.context.time_ns)

    def _received(self, work: Workload, flow: str, index: int, result: Received) -> None:
        self._receivers.pop((flow, index), None)
        work.received(self, flow, index, result)

    def _sent(self, work: Workload, port: int, flow: str, index: int, result: Sent) -> None:
        self._senders.pop((flow, index), None)
        if isinstance(result, TcpSent) and result.connected_ns is not None:
            self._connected[flow] = self._connected.get(flow, 0) + 1
        work.sent(self, port, flow, index, result)
