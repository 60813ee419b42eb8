"""A host's agent in real time: `python -m hosts.agent_process` runs its workloads in its namespace, and reports.

Read first: `hosts/engine/agent.py`, which does the work; `messages.py` for the messages; docs/hosts.md for their order.

Rules kept
- One thread, one loop, no polling.
- The agent ends on `stop`, and when its stdin closes: a killed parent leaves no agent behind. Unfinished connections
  are then reset at once. The agent ignores SIGINT; on Ctrl-C the parent ends it.
- Every time in a record or result is ns since the epoch.

Left out: starting namespaces and profiles (`hosts/kernel/network.py`, `hosts/kernel/profiles/`).
"""

import sys
from pathlib import Path
from typing import TextIO

from common.units import MS
from hosts.engine.agent import Agent
from hosts.engine.content import Octets
from hosts.engine.context import Context
from hosts.engine.probe import ConnectionProbe, Probe
from hosts.engine.results import EndReport
from hosts.engine.streams import Transport
from hosts.errors import HostError
from hosts.jsonlines import MessageReader, run_child, unexpected, write_message
from hosts.kernel.mptcp import KernelMptcp
from hosts.kernel.namespaces import enter
from hosts.kernel.privileges import CAP_DAC_OVERRIDE, CAP_NET_ADMIN, CAP_NET_BIND_SERVICE, keep
from hosts.kernel.probes import TcpProbe
from hosts.kernel.profiles import kernel_profile, user_profile
from hosts.kernel.programs import KernelPrograms
from hosts.kernel.tcp_flows import KernelTcp
from hosts.kernel.tun import Tun
from hosts.kernel.tun_stack import TunStack, TunTcp
from hosts.kernel.udp_flows import KernelDatagrams
from hosts.kernel.udp_ports import KernelUdpPorts
from hosts.loop import READ, Loop
from hosts.messages import AgentConfig, Done, FlowBroken, FromProcess, Go, Pause, Ready, Stop, ToProcess
from hosts.tcp.profiles import UserProfile
from hosts.transports import further_transports
from hosts.workloads import sender_of
from hosts.workloads.mptcp import Mptcp
from hosts.workloads.program import ProgramTraffic
from tcpip.segment import HEADER_BYTES


class AgentProcess:
    """One host's agent on a loop of its own; it reports on stdout.

    Raises HostError (namespace, ports).
    """

    def __init__(self, config: AgentConfig) -> None:
        if config.namespace is not None:
            enter(config.namespace)
        profile = None if config.tcp is None else user_profile(config.tcp)
        self._probe_interval_ns = config.probe_interval_ms * MS
        self.loop = Loop()
        self._begun = self._stopping = False
        self._programs = KernelPrograms(self.loop)
        self._context = Context(
            clock=self.loop,
            host=config.host,
            seed=config.seed,
            contents=Octets(config.seed),
            probe=_kernels_probe(config) if profile is None else ConnectionProbe(config.host),
            emit=self._write,
        )
        self._folder = config.folder
        self.transports = {"tcp": self._make_tcp(config, profile)}
        try:
            if any(isinstance(work, Mptcp) for work in config.workloads):
                self.transports[Mptcp.transport] = self._make_mptcp(config)
            open_log = None if config.folder is None else self._open_log
            ports = KernelUdpPorts(self.loop, config.host)
            self.transports |= further_transports(self._context, ports, config.workloads, open_log)
            self.agent = Agent(
                self._context,
                self.transports,
                KernelDatagrams(self.loop, config.host),
                peer=config.peer,
                workloads=config.workloads,
                ended=self._ended,
                broken=lambda flow, error: write_message(FlowBroken(flow=flow, error=error)),
                again_ns=None if config.again_s is None else int(config.again_s * 1e9),
                programs=self._programs,
                address=config.address or "",
                namespace=config.namespace or "",
            )
        except BaseException:
            self.close()
            raise

    def _make_tcp(self, config: AgentConfig, profile: UserProfile | None) -> Transport:
        """Return the host's TCP: the kernel's, or (with a profile) ours.

        The kernel's windows are its profile's (hosts/kernel/profiles/).
        """
        if profile is None:
            return KernelTcp(self._context, self.loop, delayed_ack=config.delayed_ack)
        tun = Tun(config.peer, descriptor=config.tun_fd)
        tcp = profile.config.but(mss=tun.mtu - HEADER_BYTES, **config.tcp_changes)
        if config.receive_buffer_bytes is not None:
            tcp = tcp.but(receive_buffer=config.receive_buffer_bytes)
        return TunTcp(self._context, TunStack(self.loop, tun), tcp)

    def _make_mptcp(self, config: AgentConfig) -> Transport:
        peers = [config.peer] if config.second_peer is None else [config.peer, config.second_peer]
        control = None if config.tcp is None else kernel_profile(config.tcp).congestion_control
        return KernelMptcp(self._context, self.loop, peers, control)

    def go(self, epoch: int) -> None:
        """Start the run's clock."""
        self._begun = True
        self.agent.go(epoch)
        self.loop.at(epoch, self._tick)
        if self.agent.done:
            write_message(Done())

    def stop(self) -> None:
        """End the transfers that still run, report their results, and leave the loop."""
        self.loop.stop()
        self.loop.refresh()
        # Reset every flow, also when the parent no longer reads the results: a socket that lingers keeps its namespace
        # alive.
        self._stopping = True
        if self._begun:
            self.agent.stop()

    def check(self) -> None:
        """Raise HostError when the measurement is not valid."""
        for transport in self.transports.values():
            transport.check()

    def close(self) -> None:
        """Release all resources; idempotent."""
        self._programs.close()
        for transport in self.transports.values():
            transport.close()

    def _open_log(self, name: str) -> TextIO:
        assert self._folder is not None
        try:
            return (Path(self._folder) / name).open("w", encoding="utf-8")
        except OSError as error:
            raise HostError(f"{Path(self._folder) / name}: cannot be written: {error.strerror}") from None

    def _tick(self, _: object) -> None:
        self.agent.sample()
        ticks = self._context.time_ns // self._probe_interval_ns + 1
        self.loop.at(self._context.epoch + ticks * self._probe_interval_ns, self._tick)

    def _ended(self, report: EndReport) -> None:
        self._write(report)
        if self.agent.done:
            self._write(Done())

    def _write(self, message: FromProcess) -> None:
        """Write a message; a closed pipe is no error once the agent ends."""
        try:
            write_message(message)
        except BrokenPipeError:
            if not self._stopping:
                raise


def _kernels_probe(config: AgentConfig) -> Probe:
    sent = [work for work in config.workloads if sender_of(work) == config.host and work.transport == "tcp"]
    return TcpProbe(config.host, {port: flow for work in sent for port, flow in work.ports().items()})


def serve(reader: MessageReader, config: AgentConfig, waiting: list[ToProcess]) -> None:
    """Run one agent from configuration to stop; raises HostError or ValueError."""
    process = AgentProcess(config)
    if not any(isinstance(work, ProgramTraffic) for work in config.workloads):
        # CAP_NET_ADMIN counts in its own namespace only, as it can enter no other
        keep({CAP_DAC_OVERRIDE, CAP_NET_BIND_SERVICE, CAP_NET_ADMIN})
    write_message(Ready())

    def handle_messages(messages: list[ToProcess]) -> None:
        for message in messages:
            match message:
                case Go():
                    process.go(message.epoch_ns)
                case Pause():
                    process.agent.pause(message.paused)
                case Stop():
                    process.stop()
                case _:
                    raise unexpected(message)

    def read_parent() -> None:
        messages = reader.read()
        if messages is None:
            process.stop()
        else:
            handle_messages(messages)

    process.loop.watch(reader, READ, read_parent)
    try:
        handle_messages(waiting)
        process.loop.run()
        process.check()
    finally:
        try:
            process.stop()
        finally:
            process.close()


if __name__ == "__main__":
    sys.exit(run_child(AgentConfig, serve))
