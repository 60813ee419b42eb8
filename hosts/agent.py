"""A host's agent in real time: `python -m hosts.agent` runs its workloads inside its namespace and reports in JSON
lines.

Read first: `hosts/engine/agent.py`, which does the work; `hosts/workloads/` (`agent_config` makes the first line);
docs/hosts.md for every message.

On stdin, in this order: the configuration; `{"go": EPOCH}` with the CLOCK_MONOTONIC ns of the run's start
(may lie ahead); `{"pause": true}` and `{"pause": false}` to stop the senders' data, and to let it go on;
`{"stop": true}`. On stdout: `{"ready": true}`, then `{"tcp": {...}}`, `{"flow": {...}}`, `{"broken": {...}}`,
`{"result": {...}}` as they come, `{"done": true}` after the last result, or `{"error": "one line"}` and exit
status 2.

Rules kept
- One thread, one loop, no polling.
- The agent ends on `stop`, and when its stdin closes: a killed parent leaves no agent behind. Unfinished connections
  are then reset at once. The agent ignores SIGINT; on Ctrl-C the parent ends it.
- Every time in a record or result is ns since the epoch.

Left out: starting namespaces and profiles (`hosts/kernel/network.py`, `hosts/kernel/profiles/`).
"""

import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from common.units import MS
from hosts.engine.agent import Agent, Report
from hosts.engine.content import Octets
from hosts.engine.context import Context
from hosts.engine.probe import ConnectionProbe, Probe
from hosts.engine.streams import Tcp
from hosts.jsonlines import MessageReader, run_child, write_message
from hosts.kernel.namespaces import enter
from hosts.kernel.probes import TcpProbe
from hosts.kernel.profiles import user_profile
from hosts.kernel.tcp_flows import KernelTcp
from hosts.kernel.tun import Tun
from hosts.kernel.tun_stack import TunStack, TunTcp
from hosts.kernel.udp_flows import KernelDatagrams
from hosts.loop import READ, Loop
from hosts.tcp.profiles import UserProfile
from hosts.workloads import Workload, from_dict
from tcpip.segment import HEADER_BYTES


class AgentProcess:
    """One host's agent on a loop of its own; it reports on stdout.

    Raises HostError (namespace, ports) and ValueError or KeyError (configuration).
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._probe_interval_ns = int(config.get("probe_interval_ms", 100)) * MS
        if self._probe_interval_ns <= 0:
            raise ValueError("probe_interval_ms must be above 0")
        send = [from_dict(raw) for raw in config.get("send", [])]
        receive = [from_dict(raw) for raw in config.get("receive", [])]
        if config.get("namespace"):
            enter(config["namespace"])
        host: str = config["host"]
        seed = int(config.get("seed", 1))
        again_s = config.get("again_s")
        profile = None if config.get("tcp") is None else user_profile(config["tcp"])
        self.loop = Loop()
        self._begun = self._stopping = False
        self._context = Context(
            clock=self.loop,
            host=host,
            seed=seed,
            contents=Octets(seed),
            probe=_probe(host, send) if profile is None else ConnectionProbe(host),
            emit=lambda record: self._write({record.measurement: asdict(record)}),
        )
        self.tcp = self._make_tcp(config, profile)
        try:
            self.agent = Agent(
                self._context,
                self.tcp,
                KernelDatagrams(self.loop, host),
                peer=config["peer"],
                send=send,
                receive=receive,
                ended=self._ended,
                broken=lambda flow, error: write_message({"broken": {"flow": flow, "error": error}}),
                # pause before a bulk transfer begins again: without a size after its connection broke, with a size
                # after the peer refused it; None: never again
                again_ns=None if again_s is None else int(again_s * 1e9),
            )
        except BaseException:
            self.tcp.close()
            raise

    def _make_tcp(self, config: Mapping[str, Any], profile: UserProfile | None) -> Tcp:
        """Return the host's TCP: the kernel's, or (with a profile) ours.

        `receive_buffer_bytes` and `tun_fd` of the configuration are ours; without them the buffer is the profile's, and
        /dev/net/tun is opened here. The kernel's windows are its profile's (hosts/kernel/profiles/).
        """
        if profile is None:
            return KernelTcp(self._context, self.loop, delayed_ack=bool(config.get("delayed_ack", False)))
        tun = Tun(config["peer"], descriptor=config.get("tun_fd"))
        tcp = profile.config
        receive_buffer = config.get("receive_buffer_bytes") or tcp.buffers.receive_buffer
        tcp = tcp.but(mss=tun.mtu - HEADER_BYTES, receive_buffer=receive_buffer)
        return TunTcp(self._context, TunStack(self.loop, tun), tcp)

    def go(self, epoch: int) -> None:
        """Start the run's clock."""
        self._begun = True
        self.agent.go(epoch)
        self.loop.at(epoch, self._tick)
        if self.agent.done:
            write_message({"done": True})

    def stop(self) -> None:
        """End the transfers that still run, report their results, and leave the loop."""
        self.loop.stop()
        self.loop.refresh()
        # Reset every flow, also when the parent no longer reads the results: a socket that lingers keeps its namespace
        # alive.
        self._stopping = True
        if self._begun:
            self.agent.stop()

    def _tick(self, _: object) -> None:
        self.agent.sample()
        ticks = self._context.time_ns // self._probe_interval_ns + 1
        self.loop.at(self._context.epoch + ticks * self._probe_interval_ns, self._tick)

    def _ended(self, report: Report) -> None:
        self._write({"result": report})
        if self.agent.done:
            self._write({"done": True})

    def _write(self, message: dict[str, Any]) -> None:
        """Write a message; once the agent ends, perhaps to nobody."""
        try:
            write_message(message)
        except BrokenPipeError:
            if not self._stopping:
                raise


def _probe(host: str, send: list[Workload]) -> Probe:
    return TcpProbe(host, {port: flow for work in send for port, flow in work.ports().items()})


def serve(reader: MessageReader, config: dict[str, Any], waiting: list[dict[str, Any]]) -> None:
    """Run one agent from configuration to stop; raises HostError, ValueError, KeyError or TypeError."""
    process = AgentProcess(config)
    write_message({"ready": True})

    def handle_messages(messages: list[dict[str, Any]]) -> None:
        for message in messages:
            if "go" in message:
                process.go(int(message["go"]))
            elif "pause" in message:
                process.agent.pause(bool(message["pause"]))
            elif message.get("stop"):
                process.stop()
            else:
                raise ValueError("expected go, pause or stop on stdin")

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
        process.tcp.check()
    finally:
        try:
            process.stop()
        finally:
            process.tcp.close()


if __name__ == "__main__":
    sys.exit(run_child(serve))
