"""What the tests with real namespaces share: a network, a radio made of a bridge, and agents.

Rules kept: everything started is ended by its own handle; waits are bounded.
"""

import os
import selectors
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Literal, TypeVar

import pytest

from common.sides import Host
from hosts.engine.results import EndReport
from hosts.kernel import profiles as kernel_profiles
from hosts.kernel.namespaces import NETNS_DIR, run_in
from hosts.kernel.network import Network, Role
from hosts.kernel.tap import Tap
from hosts.messages import AgentConfig, Config, Decoder, Done, FromProcess, Go, Ready, ToProcess, encode
from hosts.workloads import Workload
from tests.harness.waiting import PATIENCE_S, wait_for

ROOT = Path(__file__).parents[2]
HOSTS: tuple[Host, Host] = ("h1", "h2")

needs_network = [
    pytest.mark.net,
    pytest.mark.skipif(os.geteuid() != 0 or not Path("/dev/net/tun").exists(), reason="needs root and /dev/net/tun"),
]


def _has_mptcp() -> bool:
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_MPTCP).close()
    except OSError:
        return False
    return True


needs_mptcp = pytest.mark.skipif(not _has_mptcp(), reason="this kernel has no MPTCP")

_numbers = count()
Direction = Literal["up", "down"]
#: the TCPs of h1 and h2
Pair = tuple[str, str]
M = TypeVar("M")


def run_name() -> str:
    """A name no other test process uses."""
    return f"test{os.getpid()}-{next(_numbers)}"


def socket_at(
    net: Network, host: Host, kind: socket.SocketKind = socket.SOCK_STREAM, protocol: int = 0
) -> socket.socket:
    """A patient socket of a host's."""
    made = run_in(net.namespaces[host], lambda: socket.socket(socket.AF_INET, kind, protocol))
    made.settimeout(PATIENCE_S)
    return made


class Bridge:
    """A radio link that carries every packet at once, except those `lose` picks; it notes when packets passed."""

    def __init__(self, network: Network, lose: Callable[[Direction, bytes], bool] | None = None) -> None:
        self._lose = lose or (lambda direction, packet: False)
        self._st = run_in(network.namespaces["st"], lambda: Tap("fl0", mtu=network.mtu))
        self._bas = run_in(network.namespaces["bas"], lambda: Tap("fl0", mtu=network.mtu))
        self.passed: list[tuple[Direction, bytes]] = []
        self._quit, self._quitter = os.pipe()
        self._thread = threading.Thread(target=self._run, name="bridge")
        self._thread.start()

    def _run(self) -> None:
        with selectors.EpollSelector() as selector:
            selector.register(self._st, selectors.EVENT_READ, ("up", self._st, self._bas))
            selector.register(self._bas, selectors.EVENT_READ, ("down", self._bas, self._st))
            selector.register(self._quit, selectors.EVENT_READ, None)
            while True:
                for key, _ in selector.select():
                    if key.data is None:
                        return
                    self._carry(*key.data)

    def _carry(self, direction: Direction, source: Tap, sink: Tap) -> None:
        # A bounded burst, so that the other direction gets its turn.
        for _ in range(64):
            packet = source.read()
            if packet is None:
                return
            self.passed.append((direction, packet))
            carried = self._carried(direction, packet)
            if carried is not None:
                sink.write(carried)

    def _carried(self, direction: Direction, packet: bytes) -> bytes | None:
        """What arrives of a packet; None of one that is lost."""
        return None if self._lose(direction, packet) else packet

    def __enter__(self) -> "Bridge":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._quitter)
        self._thread.join()
        os.close(self._quit)
        self._st.close()
        self._bas.close()


@contextmanager
def program(code: str, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A Python program, with the first line it has printed; its stdin closes at the end."""
    command = [sys.executable, "-c", code, *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()


def inside(net: Network, role: Role, *command: str) -> str:
    """What a command prints in one of the namespaces."""
    path = NETNS_DIR / net.namespaces[role]
    return subprocess.run(["nsenter", f"--net={path}", *command], capture_output=True, text=True, check=True).stdout


class AgentProcess:
    """An agent, or another process of a run, with its messages, read as they come by a thread."""

    def __init__(self, config: Config, module: str = "hosts.agent_process") -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", module], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.messages: list[FromProcess] = []
        self._thread = threading.Thread(target=self._read, name="agent output")
        self._thread.start()
        self.send(config)

    def _read(self) -> None:
        assert self.process.stdout is not None
        decoder = Decoder[FromProcess](FromProcess)
        for line in self.process.stdout:
            self.messages += decoder.feed(line)

    def send(self, message: ToProcess) -> None:
        """Send one message."""
        assert self.process.stdin is not None
        self.process.stdin.write(encode(message))
        self.process.stdin.flush()

    def wait_for(self, kind: type[M]) -> M:
        """The first message of a kind."""

        def come() -> list[M]:
            over = not self._thread.is_alive()
            found = self.all(kind)
            assert found or not over, f"agent ended without {kind.__name__}: {self.messages[-3:]}"
            return found

        return wait_for(come, lambda: f"no {kind.__name__}: {self.messages[-3:]}, {self.ended()}")[0]

    def ended(self) -> str:
        """The ends that have reported, whether the process lives, and the last message."""
        ends = ", ".join(f"{each.flow} {each.index}" for each in self.all(EndReport))
        return f"ended: {ends}; status {self.process.poll()}, last: {self.messages[-1:]}"

    def all(self, kind: type[M]) -> list[M]:
        """The messages of a kind so far."""
        return [message for message in self.messages if isinstance(message, kind)]

    def close(self) -> int:
        """Close its stdin, as a dying parent would, and wait for its end."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        try:
            return self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        finally:
            self._thread.join(PATIENCE_S)
            self.process.stdout.close()


@contextmanager
def agents(*configs: AgentConfig) -> Iterator[list[AgentProcess]]:
    """Agents that are ready; ended afterwards."""
    started = [AgentProcess(config) for config in configs]
    try:
        for agent in started:
            agent.wait_for(Ready)
        yield started
    finally:
        for agent in started:
            agent.close()


def go(started: list[AgentProcess]) -> int:
    """Start the clock of all agents now; returns the epoch."""
    epoch = time.monotonic_ns()
    for agent in started:
        agent.send(Go(epoch_ns=epoch))
    return epoch


def configs(net: Network, pair: Pair, work: Sequence[Workload], **more: Any) -> list[AgentConfig]:
    """Both hosts' configurations, after the kernels were given theirs."""
    made = []
    for host, peer, tcp in zip(HOSTS, reversed(HOSTS), pair, strict=True):
        namespace, kernels = net.namespaces[host], kernel_profiles.kernel_profile(tcp)
        kernel_profiles.apply(namespace, kernels)
        made.append(
            AgentConfig(
                host=host,
                workloads=tuple(work),
                peer=net.address(peer),
                namespace=namespace,
                tcp=tcp,
                delayed_ack=kernels.delayed_ack,
                **more,
            )
        )
    return made


def run(net: Network, pair: Pair, work: Sequence[Workload], **more: Any) -> tuple[list[AgentProcess], list[EndReport]]:
    """Run workloads to their end; the agents (ended) and all reports."""
    with agents(*configs(net, pair, work, **more)) as started:
        go(started)
        try:
            for agent in started:
                agent.wait_for(Done)
        except AssertionError as error:
            # which end a stalled transfer waits for
            error.add_note("; ".join(f"agent {index} {agent.ended()}" for index, agent in enumerate(started)))
            raise
    assert [agent.process.returncode for agent in started] == [0, 0]
    return started, [report for agent in started for report in agent.all(EndReport)]


def of(reports: list[EndReport], end: type[Any], flow: str) -> list[Any]:
    """The results of one end of a flow, in the order of its connections."""
    mine = [report for report in reports if report.flow == flow and isinstance(report.result, end)]
    assert [report.index for report in mine] == [*range(len(mine))]
    return [report.result for report in mine]
