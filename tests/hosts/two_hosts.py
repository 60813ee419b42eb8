"""Two hosts and their agents in virtual time, joined by wires. A host may begin late; packets and connections may be
lost on the way.
"""

from random import Random

from typing_extensions import override

from channel.errors import ERASED, INTACT, ErrorModel, Verdict
from common.sides import HOSTS, Host, peer_of
from common.units import MS
from hosts.engine.agent import Agent
from hosts.engine.content import Octets
from hosts.engine.context import Context
from hosts.engine.own_tcp import OwnTcp
from hosts.engine.probe import ConnectionProbe, Record
from hosts.engine.programs import Programs
from hosts.engine.results import EndReport, Received, Sent
from hosts.engine.stack import Stack
from hosts.tcp.config import TcpConfig
from hosts.workloads import Workload
from tcpip.segment import RST, IpPacket, Segment
from testbed.model.traffic import StackDatagrams
from testbed.model.virtual_clock import VirtualClock
from testbed.model.wired_link import Wire

RATE_BPS = 8_000_000
DELAY_NS = 10 * MS
ADDRESSES: dict[Host, str] = {"h1": "10.0.0.1", "h2": "10.0.0.2"}
#: octets are acknowledged at once, and few wait on a wire
TCP = TcpConfig().but(mss=1000, delayed_ack_ns=0, receive_buffer=32_000, send_buffer=32_000)
#: octets of a SYN with its options: MSS, window scale, SACK-permitted, timestamps
SYN_BYTES = 60


class Cut(ErrorModel):
    """Loses what is sent from `begin` on, until `end`."""

    def __init__(self, begin: int, end: int) -> None:
        self._begin, self._end = begin, end

    @override
    def judge(self, start: int, end: int, nbytes: int) -> Verdict:
        return ERASED if self._begin <= start < self._end else INTACT


class TwoHosts:
    """The hosts, with octets that are compared. `cut`: from when until when nothing crosses, either way."""

    def __init__(
        self,
        *workloads: Workload,
        again_ns: int | None = None,
        programs: Programs | None = None,
        cut: tuple[int, int] = (0, 0),
        tcp: TcpConfig = TCP,
    ) -> None:
        self._workloads, self._again_ns, self._programs, self._tcp = workloads, again_ns, programs, tcp
        self.clock = VirtualClock()
        self._stacks: dict[Host, Stack] = {}
        self._wires = {host: self._wire(host, Cut(*cut)) for host in HOSTS}
        #: what each host has sent, and when
        self.segments: dict[Host, list[tuple[int, Segment]]] = {host: [] for host in HOSTS}
        self.agents: dict[Host, Agent] = {}
        self.reports: list[EndReport] = []
        self.records: list[Record] = []
        self.broken: list[tuple[int, str, str]] = []

    def _wire(self, host: Host, errors: ErrorModel) -> Wire:
        def arrive(packet: IpPacket) -> None:
            there = self._stacks.get(peer_of(host))
            if there is not None:
                there.take(packet)

        return Wire(self.clock, arrive, rate_bps=RATE_BPS, delay_ns=DELAY_NS, errors=errors)

    def _send(self, host: Host, packet: IpPacket) -> None:
        if isinstance(packet, Segment):
            self.segments[host].append((self.clock.now, packet))
        self._wires[host].take(packet)

    def _note_broken(self, flow: str, error: str) -> None:
        self.broken.append((self.clock.now, flow, error))

    def listen(self, host: Host) -> Stack:
        """Give a host its stack: it answers from now on, if only with RSTs."""
        address = int.from_bytes(map(int, ADDRESSES[host].split(".")))
        stack = Stack(self.clock, address, lambda packet: self._send(host, packet), Random(host))
        self._stacks[host] = stack
        return stack

    def make(self, host: Host) -> Agent:
        """Make a host's agent, which has its ports from now on."""
        stack = self._stacks.get(host) or self.listen(host)
        context = Context(
            clock=self.clock,
            host=host,
            seed=1,
            contents=Octets(1),
            probe=ConnectionProbe(host),
            emit=self.records.append,
        )
        agent = self.agents[host] = Agent(
            context,
            {"tcp": OwnTcp(context, stack, self._tcp)},
            StackDatagrams(stack),
            peer=ADDRESSES[peer_of(host)],
            workloads=self._workloads,
            ended=self.reports.append,
            broken=self._note_broken,
            again_ns=self._again_ns,
            programs=self._programs,
            address=ADDRESSES[host],
        )
        return agent

    def go(self) -> "TwoHosts":
        """Make both agents, and start the run now."""
        for host in HOSTS:
            self.make(host)
        for agent in self.agents.values():
            agent.go(self.clock.now)
        return self

    def run(self, until: int) -> None:
        self.clock.run(until=until)

    def reset(self) -> None:
        """Reset both ends of the connection in use, as a middlebox does that has lost its state."""
        for host in HOSTS:
            _, latest = self.segments[host][-1]
            self._stacks[host].take(Segment(latest.flow.reversed(), latest.ack, 0, RST, 0))

    @property
    def sent(self) -> list[Sent]:
        """The results of sending ends."""
        return [report.result for report in self.reports if isinstance(report.result, Sent)]

    @property
    def received(self) -> list[Received]:
        """The results of receiving ends."""
        return [report.result for report in self.reports if isinstance(report.result, Received)]
