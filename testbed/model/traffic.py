"""The workloads of a scenario in virtual time: the agents of both hosts (`hosts/engine/agent.py`) on one clock."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from ipaddress import IPv4Address

from typing_extensions import override

from common.sides import HOSTS, Host, peer_of
from hosts.engine.agent import Agent
from hosts.engine.content import Numbers
from hosts.engine.context import Context, ignore
from hosts.engine.datagrams import DatagramReceiver, Datagrams, DatagramSender
from hosts.engine.own_tcp import OwnSender, OwnTcp
from hosts.engine.packets import UDP_HEADERS, Datagram, PayloadDatagram
from hosts.engine.ports import Address, OpenLog, Take, UdpPort, UdpPorts
from hosts.engine.probe import ConnectionProbe, Emit
from hosts.engine.results import EndReport
from hosts.engine.stack import Stack, Tap
from hosts.tcp.config import TcpConfig
from hosts.tcp.connection import Connection
from hosts.transports import further_transports
from hosts.workloads import Workload
from tcpip.segment import HEADER_BYTES, Flow, Segment
from testbed.model.watch import Watch
from testbed.results.end_reports import EndReports


class Traffic:
    """Runs `workloads` between the two `hosts`, with the TCP of each in `configs`, from `epoch` on (not in the past).

    `ended(report)` is called for each end of a transfer that is over, once `reports` has it; `emit` takes records.
    `timed`: TCP's results have the delays of their packets. `open_log` opens files for logs that workloads ask for.
    """

    def __init__(
        self,
        hosts: Mapping[Host, Stack],
        workloads: Sequence[Workload],
        configs: Mapping[Host, TcpConfig],
        *,
        seed: int,
        epoch: int,
        ended: Callable[[EndReport], None],
        emit: Emit = ignore,
        watch: Watch | None = None,
        timed: bool = False,
        open_log: OpenLog | None = None,
    ) -> None:
        self.reports = EndReports()
        self._ended = ended
        numbers = Numbers()

        def make(host: Host) -> Agent:
            stack = hosts[host]
            stack.timed = timed
            context = Context(
                clock=stack.clock, host=host, seed=seed, contents=numbers, probe=ConnectionProbe(host), emit=emit
            )
            own = OwnTcp(
                context,
                stack,
                configs[host],
                tap_for=None if watch is None else lambda flow: _FlowTap(watch, flow, epoch),
            )
            ports = StackPorts(stack, configs[host].handshake.mss + HEADER_BYTES)
            return Agent(
                context,
                {"tcp": own, **further_transports(context, ports, workloads, open_log)},
                StackDatagrams(stack),
                peer=str(IPv4Address(hosts[peer_of(host)].address)),
                workloads=workloads,
                ended=self._report,
                see=None if watch is None else lambda flow: partial(watch.delivered, flow),
            )

        self._agents = [make(host) for host in HOSTS]
        for agent in self._agents:
            agent.go(epoch)

    @property
    def done(self) -> bool:
        """Whether all ends have reported."""
        return all(agent.done for agent in self._agents)

    def sending(self) -> list[Connection]:
        """Return the connections that send data at present."""
        ends = [end for agent in self._agents for end in agent.sending()]
        return [end.connection for end in ends if isinstance(end, OwnSender)]

    def pause(self, paused: bool) -> None:
        """Stop the senders' data, or let it go on. See `Agent.pause`."""
        for agent in self._agents:
            agent.pause(paused)

    def stop(self) -> None:
        """End the transfers that still run; their ends report."""
        for agent in self._agents:
            agent.stop()

    def sample(self) -> None:
        """Emit a record of every connected sender and of every receiving flow."""
        for agent in self._agents:
            agent.sample()

    def _report(self, report: EndReport) -> None:
        self.reports.append(report)
        self._ended(report)


class StackDatagrams(Datagrams):
    """The UDP of a host in virtual time."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack

    @override
    def sender(self, address: str, port: int, packet_bytes: int) -> DatagramSender:
        return _Sender(self._stack, Flow(self._stack.address, port, int(IPv4Address(address)), port), packet_bytes)

    @override
    def receiver(self, port: int) -> DatagramReceiver:
        return _Receiver(self._stack, port)


class _Sender(DatagramSender):
    def __init__(self, stack: Stack, flow: Flow, packet_bytes: int) -> None:
        self._out, self._flow, self._packet_bytes = stack.out, flow, packet_bytes

    def send(self, sequence: int, now: int) -> bool:
        self._out.take(Datagram(self._flow, self._packet_bytes, sequence, now))
        return True

    def close(self) -> None:
        """Nothing to close."""


class _Receiver(DatagramReceiver):
    def __init__(self, stack: Stack, port: int) -> None:
        self._stack, self._port = stack, port

    def start(self, take: Callable[[int, int, int], None]) -> None:
        self._stack.bind(self._port, lambda packet: take(packet.nbytes - UDP_HEADERS, packet.sequence, packet.sent_at))

    def close(self) -> None:
        """Nothing to close: an end that is over ignores packets."""


class StackPorts(UdpPorts):
    """The UDP of a host in virtual time, with payloads; `mtu_bytes` is the path's."""

    def __init__(self, stack: Stack, mtu_bytes: int) -> None:
        self._stack, self._mtu_bytes = stack, mtu_bytes

    @override
    def open(self, port: int) -> UdpPort:
        return _Port(self._stack, port)

    @override
    def payload_bytes(self, address: str) -> int:
        return self._mtu_bytes - UDP_HEADERS


class _Port(UdpPort):
    def __init__(self, stack: Stack, port: int) -> None:
        self._stack, self._port = stack, port
        #: by the peer's address and port
        self._flows: dict[Address, Flow] = {}
        self._addresses: dict[int, str] = {}

    def start(self, take: Take) -> None:
        def taken(packet: Datagram) -> None:
            # another workload's packet would come to its own port
            assert isinstance(packet, PayloadDatagram)
            flow = packet.flow
            source = self._addresses.get(flow.source)
            if source is None:
                source = self._addresses[flow.source] = str(IPv4Address(flow.source))
            take(packet.payload, (source, flow.source_port), packet.sent_at)

        self._stack.bind(self._port, taken)

    def send(self, payload: bytes, to: Address) -> None:
        flow = self._flows.get(to)
        if flow is None:
            address, port = to
            flow = self._flows[to] = Flow(self._stack.address, self._port, int(IPv4Address(address)), port)
        self._stack.out.take(PayloadDatagram(flow, payload, self._stack.clock.now))

    def close(self) -> None:
        """Nothing to close: a transport that is over ignores packets."""


class _FlowTap(Tap):
    """Passes the segments of one flow to the watch."""

    def __init__(self, watch: Watch, flow: str, epoch: int) -> None:
        self._watch, self._flow, self._epoch = watch, flow, epoch

    def sent(self, segment: Segment, now: int) -> None:
        self._watch.sent(self._flow, segment, now - self._epoch)

    def received(self, segment: Segment, now: int) -> None:
        self._watch.received(self._flow, segment, now - self._epoch)
