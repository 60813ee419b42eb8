"""Workloads: the traffic of the hosts, as plain data with its begin, course and end. A file each, which declares a
`WORKLOAD`.

Read first: `hosts/engine/agent.py`, which calls a workload's methods; docs/scenarios.md for the list.

Rules kept

- The receiver listens. Ports are explicit, so that probes and captures can name flows.
- A workload is valid once it exists: wrong values raise ValueError with one line.
- The same code runs in virtual and in real time: a workload uses an agent and its clock, never a socket.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Self

from annotated_types import Gt, Lt, MinLen
from typing_extensions import override

from common.options import NotNegative, check_ranges
from common.registry import Registry
from common.sides import SENDERS, Host, Side
from hosts.engine.results import Received, Sent
from hosts.errors import HostError

if TYPE_CHECKING:
    from hosts.engine.agent import Agent

Port = Annotated[int, Gt(0), Lt(65536)]
#: duration of a workload without an end: ten years
_ENDLESS_S: Final = 3_650 * 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of one flow, from the results of both ends."""

    #: payload octets received within the span
    nbytes: int
    #: begin and end, in s since the run's start
    span: tuple[float, float]
    #: duration; None: that of the span
    duration_s: float | None = None
    finished: bool
    #: whether the received octets are those sent; None: unknown
    intact: bool | None
    #: durations of transfers that are timed separately
    transfer_s: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload(ABC):
    """The common part of workloads: the flow's name, direction and port, and its begin after the run's start."""

    kind: ClassVar[str]
    #: whether it only measures: the run's own figures are those of the other flows
    beside: ClassVar[bool] = False
    #: the transport of its connections, where it has some: `tcp`, or another that the driver has (hosts/transports.py)
    transport: ClassVar[str] = "tcp"

    flow: Annotated[str, MinLen(1)]
    direction: Side = "up"
    port: Port
    start_s: NotNegative = 0.0

    def __post_init__(self) -> None:
        if self.direction not in SENDERS:
            raise ValueError(f"direction {self.direction!r} must be up or down")
        check_ranges(self)

    # -- as plain data ---------------------------------------------------------------------------------------

    @property
    def transfers(self) -> int:
        """Number of results that each host reports."""
        return 1

    @property
    def ends_s(self) -> float | None:
        """The end in s since the run's start, if a duration determines it."""
        return None

    @property
    def payload_bytes(self) -> int | None:
        """Payload octets of the workload, if it has a size."""
        return None

    @property
    def kernels_option(self) -> str | None:
        """The name of a given option that only the kernel's TCP supports."""
        return None

    def ports(self) -> dict[int, str]:
        """Return the flow of each port."""
        return {self.port: self.flow}

    @property
    def live_option(self) -> str | None:
        """The name of a given option that needs real time, with `kind` for the workload itself."""
        return None

    @property
    def logs(self) -> bool:
        """Whether the hosts write files of their own to the run's folder."""
        return False

    @property
    def least_mtu_bytes(self) -> int:
        """The smallest MTU that the workload can do with."""
        return 0

    @property
    def largest_packet_bytes(self) -> int | None:
        """The largest IP packet, for workloads without TCP."""
        return None

    def lasting(self) -> Self:
        """Return the workload without its time limit, unless it has another limit."""
        return self

    # -- on the receiving host -------------------------------------------------------------------------------

    @abstractmethod
    def bind(self, agent: "Agent") -> None:
        """Take the ports."""

    @abstractmethod
    def expect(self, agent: "Agent") -> None:
        """Receive from now on; `agent.at` is valid."""

    def received(self, agent: "Agent", flow: str, index: int, result: Received) -> None:
        """Take the result of a receiving end."""
        agent.report(self, flow, index, result)

    # -- on the sending host ---------------------------------------------------------------------------------

    def bind_sender(self, agent: "Agent") -> None:  # noqa: B027 (most workloads have no answers)
        """Take the ports for answers, if there are any."""

    @abstractmethod
    def start(self, agent: "Agent") -> None:
        """Begin to send: `start_s` is now."""

    def sent(self, agent: "Agent", port: int, flow: str, index: int, result: Sent) -> None:
        """Take the result of a sending end."""
        agent.report(self, flow, index, result)

    # -- the result ------------------------------------------------------------------------------------------

    @abstractmethod
    def outcome(self, senders: Sequence[Sent], receivers: Sequence[Received], until_s: float) -> Outcome:
        """Return the outcome of one flow from the results of its ends, in the order of transfers.

        `until_s`: end of the run.
        """

    def span(self, duration_s: float | None, until_s: float) -> tuple[float, float]:
        """Return begin and end of a flow with a planned duration of `duration_s`."""
        end_s = until_s if duration_s is None else min(self.start_s + duration_s, until_s)
        return float(self.start_s), float(max(end_s, self.start_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamWorkload(Workload):
    """A workload of connections: one after the other on each port, and each timed by itself."""

    @override
    def bind(self, agent: "Agent") -> None:
        for port in self.ports():
            agent.bind(self, port)

    @override
    def expect(self, agent: "Agent") -> None:
        for port, flow in self.ports().items():
            agent.accept(self, port, flow)

    @override
    def received(self, agent: "Agent", flow: str, index: int, result: Received) -> None:
        if index + 1 == self.transfers // len(self.ports()):
            agent.end_counting(flow)
        agent.report(self, flow, index, result)

    @override
    def outcome(self, senders: Sequence[Sent], receivers: Sequence[Received], until_s: float) -> Outcome:
        times = seconds_of(senders)
        nbytes = sum(end.bytes for end in receivers)
        if len(times) < self.transfers // len(self.ports()):
            return Outcome(
                nbytes=nbytes,
                span=self.span(None, until_s),
                finished=False,
                intact=intact(receivers),
                transfer_s=times,
            )
        return Outcome(
            nbytes=nbytes,
            span=(senders[0].started_ns / 1e9, senders[-1].finished_ns / 1e9),
            duration_s=sum(times),
            finished=True,
            intact=intact(receivers) and same_streams(senders, receivers),
            transfer_s=times,
        )


def intact(receivers: Sequence[Received]) -> bool:
    """Whether all octets that were read equal those written."""
    return all(end.intact for end in receivers)


def same_streams(senders: Sequence[Sent], receivers: Sequence[Received]) -> bool:
    """Whether both ends report the same complete streams."""
    return [(end.bytes, end.sha256) for end in senders] == [(end.bytes, end.sha256) for end in receivers]


def seconds_of(senders: Sequence[Sent]) -> tuple[float, ...]:
    """Return the duration of each complete transfer."""
    return tuple((end.finished_ns - end.started_ns) / 1e9 for end in senders if end.complete)


@dataclass(frozen=True, kw_only=True)
class WorkloadPlugin:
    """A workload as scenarios know it: `kind` is its name, the fields of its dataclass are further keys."""

    name: str
    #: in a line, for the table in docs/scenarios.md
    summary: str
    options: type[Workload]
    #: options as a scenario gives them, for tests: a few seconds at most on a link of 1 Mbit/s
    example: Mapping[str, Any]
    #: whether tier `model` can run it
    simulated: bool = True


WORKLOADS: Final = Registry("hosts.workloads", "WORKLOAD", WorkloadPlugin)


def without_end(workload: Any) -> Any:
    """Return a workload with an endless duration."""
    return replace(workload, duration_s=_ENDLESS_S)


def sender_of(workload: Workload) -> Host:
    """Return the sending host of a workload."""
    return SENDERS[workload.direction]


def check_ports(workloads: Iterable[Workload]) -> None:
    """Raise HostError when two workloads use the same port or the same flow name."""
    taken: dict[int, str] = {}
    for workload in workloads:
        for port, flow in workload.ports().items():
            if port in taken:
                raise HostError(f"flows {taken[port]} and {flow} both use port {port}: give one another port")
            if flow in taken.values():
                raise HostError(f"two flows are called {flow}: give one another name")
            taken[port] = flow
