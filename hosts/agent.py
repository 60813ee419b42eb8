"""One host's agent: `python -m hosts.agent` runs its workloads inside its namespace and reports in JSON
lines.

Read first: `hosts/workloads.py` (`agent_config` makes the first line); docs/hosts.md for every message.

On stdin, in this order: the configuration; `{"go": EPOCH}` with the CLOCK_MONOTONIC ns of the run's start
(may lie ahead); `{"pause": true}` and `{"pause": false}` whenever senders are to get no data, or data again;
`{"stop": true}`. On stdout: `{"ready": true}`, then `{"tcp": {...}}`, `{"flow": {...}}`, `{"broken": {...}}`,
`{"result": {...}}` as they come, `{"done": true}` after the last result, or `{"error": "one line"}` and exit
status 2.

Rules kept
- One thread, one loop, no polling.
- Ends when told to stop, and at once when its stdin closes: a killed parent leaves no agent behind. What is
  unfinished then is reset, not lingered over. SIGINT is the parent's business: Ctrl-C reaches us through it.
- Every time in a record or result is ns since the epoch.

Left out: starting namespaces and profiles (`hosts/network.py`, `hosts/kernel_profiles/`).
"""

import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from hosts.flows import Counter, Result
from hosts.jsonlines import Orders, run_child, say
from hosts.kernel_profiles import user_profile
from hosts.loop import READ, Loop
from hosts.namespaces import enter
from hosts.probes import Probe, TcpProbe
from hosts.stream_ends import Receive, ReceivingEnd, SendingEnd, Tcp, Transfer, never_connected
from hosts.tcp_flows import KernelTcp
from hosts.udp_flows import UdpReceiver, UdpSender
from hosts.user_flows import UserProbe, UserTcp
from hosts.workloads import Bulk, OnOffUdp, Short, Workload, from_dict
from telemetry.records import FlowRecord, TcpRecord

#: how long after its sender has given up a receiver waits to hear of it
RST_GRACE_S = 2.0


class Agent:
    """Everything one host sends and receives in one run.

    Raises HostError (namespace, ports) and ValueError or KeyError (configuration).
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.host: str = config["host"]
        self.seed: int = int(config.get("seed", 1))
        self.delayed_ack = bool(config.get("delayed_ack", False))
        self._peer: str = config["peer"]
        self._probe_interval_ns = int(config.get("probe_interval_ms", 100)) * 1_000_000
        if self._probe_interval_ns <= 0:
            raise ValueError("probe_interval_ms must be above 0")
        self._send = [from_dict(raw) for raw in config.get("send", [])]
        self._receive = [from_dict(raw) for raw in config.get("receive", [])]
        if config.get("namespace"):
            enter(config["namespace"])
        self.loop = Loop()
        self.probe, self._tcp = self._make_tcp(
            config.get("tcp"), config.get("receive_buffer_bytes"), config.get("tun_fd")
        )
        self._epoch: int | None = None
        self._ticks = 0
        self._expected = sum(_results(work) for work in (*self._send, *self._receive))
        self._active: dict[object, SendingEnd | ReceivingEnd | UdpSender | UdpReceiver] = {}
        self._counters: dict[str, Counter] = {}
        self._accepted: dict[str, int] = {}
        self._at_duration: dict[str, int] = {}
        self._listeners: list[tuple[int, str, Workload]] = []
        self._udp_receivers: list[tuple[UdpReceiver, OnOffUdp]] = []
        self._paused = False
        again_s = config.get("again_s")
        #: how long after its connection has broken a bulk without a size begins again, and one with a size that found
        #: nobody; None: never
        self._again_ns = None if again_s is None else int(again_s * 1e9)
        try:
            for work in self._receive:
                self._bind(work)
        except BaseException:
            self.close()
            raise

    def _make_tcp(self, name: str | None, receive_buffer: int | None, tun_fd: int | None) -> tuple[Probe, Tcp]:
        """Return the TCP this host speaks, and what watches it: the kernel's, or the one that is called user:NAME.

        `receive_buffer` and `tun_fd` are that one's; None: its profile's, and it opens /dev/net/tun itself. The
        kernel's windows are its profile's (hosts/kernel_profiles/).
        """
        profile = None if name is None else user_profile(name)
        if profile is not None:
            watch, tcp = UserProbe(self.host), profile.config
            if receive_buffer is not None:
                tcp = replace(tcp, receive_buffer=receive_buffer)
            return watch, UserTcp(self, watch, self._peer, tcp, tun_fd)
        names = {port: flow for work in self._send for port, flow in work.ports().items()}
        return TcpProbe(self.host, names), KernelTcp(self)

    def since_epoch(self, now: int) -> int:
        """CLOCK_MONOTONIC as ns since the run's start."""
        assert self._epoch is not None, "flows exist only after go"
        return now - self._epoch

    def emit(self, record: TcpRecord | FlowRecord) -> None:
        """Report a record."""
        say({record.measurement: asdict(record)})

    def go(self, epoch: int) -> None:
        """Start the run's clock: begin to accept, and send at the workloads' times."""
        self._epoch = epoch
        for port, flow, work in self._listeners:
            self._tcp.accept(port, partial(self._accept, flow, work))
        for receiver, work in self._udp_receivers:
            receiver.start()
            end_s = work.start_s + work.duration_s + work.drain_s
            self.loop.call_at(self._at(end_s), partial(receiver.abort, None))
        for work in self._receive:
            if isinstance(work, Bulk) and work.duration_s is not None:
                end_s = work.start_s + work.duration_s
                for flow in work.ports().values():
                    self.loop.call_at(self._at(end_s), partial(self._mark, flow))
                    # the sender has given up by then, and the RST that says so may be lost as any packet
                    given_up_at = self._at(end_s + work.drain_s + RST_GRACE_S)
                    self.loop.call_at(given_up_at, partial(self._give_up, work, flow))
        for work in self._send:
            self.loop.call_at(self._at(work.start_s), partial(self._start, work))
        self.loop.call_at(self._at(0), self._tick)
        if self._expected == 0:
            say({"done": True})

    def pause(self, paused: bool) -> None:
        """Give senders no new data, or data again; what TCP has buffered still goes out, and time goes on."""
        self._paused = paused
        for flow in self._active.values():
            if isinstance(flow, SendingEnd | UdpSender):
                flow.pause(paused)

    def stop(self) -> None:
        """End what still runs, with its results, and leave the loop."""
        self.loop.stop()
        if self._epoch is None:
            return
        for flow in list(self._active.values()):
            # Every flow must be reset, whether or not somebody still reads our results: a socket that lingers
            # keeps its namespace alive.
            with suppress(BrokenPipeError):
                flow.abort("stopped")

    def check(self) -> None:
        """Raise HostError when what was measured is not to be believed."""
        self._tcp.check()

    def close(self) -> None:
        """Let go of the host's TCP; idempotent."""
        self._tcp.close()

    def _at(self, seconds: float) -> int:
        assert self._epoch is not None
        return self._epoch + int(seconds * 1e9)

    def _tick(self) -> None:
        now = self.loop.now()
        for record in self.probe.sample(self.since_epoch(now)) if self._send else ():
            self.emit(record)
        for counter in self._counters.values():
            counter.report(now)
        self._ticks = self.since_epoch(now) // self._probe_interval_ns + 1
        self.loop.call_at(self._at(0) + self._ticks * self._probe_interval_ns, self._tick)

    # Receiving.

    def _bind(self, work: Workload) -> None:
        for port, flow in work.ports().items():
            counter = self._counters[flow] = Counter(self, flow)
            if isinstance(work, OnOffUdp):
                receiver = UdpReceiver(self, work, counter, partial(self._received, work, flow, 0, flow))
                self._active[flow] = receiver
                self._udp_receivers.append((receiver, work))
            else:
                self._tcp.bind(port)
                self._listeners.append((port, flow, work))

    def _accept(self, flow: str, work: Workload, receive: Receive) -> None:
        # Connections of one flow follow one another, so the order of accepting numbers them.
        index = self._accepted.get(flow, 0)
        self._accepted[flow] = index + 1
        key = (flow, index)
        done = partial(self._received, work, flow, index, key)
        receiver = receive(flow, index, self._counters[flow], done)
        if not receiver.ended:
            self._active[key] = receiver

    def _give_up(self, work: Bulk, flow: str) -> None:
        receiver = self._active.get((flow, 0))
        if receiver is not None:
            receiver.abort("the sender's end was not heard")
        elif flow not in self._accepted:
            # no SYN has come through
            self._accepted[flow] = 1
            self._received(work, flow, 0, (flow, 0), never_connected())

    def _mark(self, flow: str) -> None:
        self._at_duration[flow] = self._counters[flow].bytes

    def _received(self, work: Workload, flow: str, index: int, key: object, result: Result) -> None:
        if self._goes_on(work, result):
            self._active.pop(key, None)
            self._counters[flow].active = False
            return
        if isinstance(work, Bulk) and work.duration_s is not None:
            result["bytes_at_duration"] = self._at_duration.get(flow, result["bytes"])
        if not isinstance(work, Short) or index + 1 == work.count:
            self._counters[flow].active = False
        self._finished("receiver", work, flow, index, key, result)

    # Sending.

    def _start(self, work: Workload) -> None:
        if isinstance(work, Bulk):
            for port, flow in work.ports().items():
                self._connect(work, port, flow, 0)
        elif isinstance(work, Short):
            self._connect(work, work.port, work.flow, 0)
        else:
            done = partial(self._sent, work, work.port, work.flow, 0)
            end_at = self._at(work.start_s + work.duration_s)
            address = (self._peer, work.port)
            self._active[work.flow] = UdpSender(self, work, address, end_at, self._paused, done)

    def _connect(self, work: Bulk | Short, port: int, flow: str, index: int) -> None:
        end_at = drain_ns = None
        if isinstance(work, Bulk) and work.duration_s is not None:
            end_at = self._at(work.start_s + work.duration_s)
            drain_ns = int(work.drain_s * 1e9)
        control = work.congestion_control if isinstance(work, Bulk) else None
        done = partial(self._sent, work, port, flow, index)
        transfer = Transfer(flow, index, (self._peer, port), work.bytes, end_at, drain_ns, control)
        self._active[flow] = self._tcp.send(transfer, self._paused, done)

    def _sent(self, work: Workload, port: int, flow: str, index: int, result: Result) -> None:
        again = self._goes_on(work, result) or self._found_nobody(work, result)
        if self._again_ns is not None and isinstance(work, Bulk) and again:
            self._active.pop(flow, None)
            say({"broken": {"flow": flow, "error": result["error"]}})
            self.loop.call_at(self.loop.now() + self._again_ns, partial(self._connect, work, port, flow, index + 1))
            return
        self._finished("sender", work, flow, index, flow, result)
        if isinstance(work, Short) and index + 1 < work.count and result["error"] != "stopped":
            next_at = self.loop.now() + int(work.gap_ms * 1e6)
            self.loop.call_at(next_at, partial(self._connect, work, work.port, flow, index + 1))

    def _goes_on(self, work: Workload, result: Result) -> bool:
        """Whether what has ended was but one connection of a bulk that begins again."""
        if self._again_ns is None or not isinstance(work, Bulk) or work.bytes is not None or work.duration_s is None:
            return False
        return result["error"] not in (None, "stopped") and self.loop.now() < self._at(work.start_s + work.duration_s)

    def _found_nobody(self, work: Workload, result: Result) -> bool:
        """Whether the peer of a transfer without a time limit was not there yet."""
        if not isinstance(work, Bulk) or work.duration_s is not None or result["error"] == "stopped":
            return False
        return result["error"] is not None and result["connected_ns"] is None

    def _finished(self, role: str, work: Workload, flow: str, index: int, key: object, result: Result) -> None:
        self._active.pop(key, None)
        head = {"role": role, "kind": work.kind, "host": self.host, "flow": flow, "index": index}
        say({"result": head | result})
        self._expected -= 1
        if self._expected == 0:
            say({"done": True})


def serve(orders: Orders, config: dict[str, Any], waiting: list[dict[str, Any]]) -> None:
    """Run one agent from configuration to stop; raises HostError, ValueError, KeyError or TypeError."""
    agent = Agent(config)
    say({"ready": True})

    def obey(messages: list[dict[str, Any]]) -> None:
        for message in messages:
            if "go" in message:
                agent.go(int(message["go"]))
            elif "pause" in message:
                agent.pause(bool(message["pause"]))
            elif message.get("stop"):
                agent.stop()
            else:
                raise ValueError("expected go, pause or stop on stdin")

    def listen_to_parent() -> None:
        messages = orders.read()
        if messages is None:
            agent.stop()
        else:
            obey(messages)

    agent.loop.watch(orders, READ, listen_to_parent)
    try:
        obey(waiting)
        agent.loop.run()
        agent.check()
    finally:
        agent.stop()
        agent.close()


def _results(work: Workload) -> int:
    if isinstance(work, Bulk):
        return work.flows
    return work.count if isinstance(work, Short) else 1


if __name__ == "__main__":
    sys.exit(run_child(serve))
