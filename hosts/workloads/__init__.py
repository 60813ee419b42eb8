"""Workloads: what the hosts send, in plain data, and how it begins, goes on and ends. A file each, which declares a
`WORKLOAD`.

Read first: `hosts/engine/agent.py`, which calls a workload's methods; docs/scenarios.md for the list.

Rules kept

- The receiver listens. Ports are explicit, so that probes and captures can name flows.
- A workload is valid once it exists: wrong values raise ValueError with one line.
- The same code runs in virtual and in real time: a workload sees an agent and its clock, never a socket.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Self

from annotated_types import Gt, Lt, MinLen

from common.options import NotNegative, check_ranges
from common.registry import Registry
from common.sides import SENDERS, Host, Side
from hosts.errors import HostError

if TYPE_CHECKING:
    from hosts.engine.agent import Agent
    from hosts.engine.context import Result

#: what one end of one transfer has reported (docs/hosts.md)
EndReport = Mapping[str, Any]
Port = Annotated[int, Gt(0), Lt(65536)]
#: a duration of a workload that is not to end by itself: ten years
_ENDLESS_S: Final = 3_650 * 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one flow, out of the reports of both its ends."""

    #: payload octets received within the span
    nbytes: int
    #: when it began and ended, in s since the run's start
    span: tuple[float, float]
    #: how long it took; None: as long as the span
    duration_s: float | None = None
    finished: bool
    #: whether the octets received are those sent; None: nobody can tell
    intact: bool | None
    #: of every transfer that is timed by itself
    transfer_s: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload(ABC):
    """What all workloads have: the flow's name, its direction and port, and when it begins after the run's start."""

    kind: ClassVar[str]

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
        """How many results each host reports."""
        return 1

    @property
    def ends_s(self) -> float | None:
        """When it has ended, in s since the run's start, where a duration decides."""
        return None

    @property
    def payload_bytes(self) -> int | None:
        """How many octets it moves, where a size decides."""
        return None

    @property
    def kernels_option(self) -> str | None:
        """The name of an option that is given and that only the kernel's TCP has."""
        return None

    def ports(self) -> dict[int, str]:
        """Return the flow that each port carries."""
        return {self.port: self.flow}

    @property
    def largest_packet_bytes(self) -> int | None:
        """The largest IP packet, where TCP's MSS does not decide."""
        return None

    def lasting(self) -> Self:
        """Return the workload without the limit of its time, unless it has another."""
        return self

    # -- on the receiving host -------------------------------------------------------------------------------

    @abstractmethod
    def bind(self, agent: "Agent") -> None:
        """Take the ports."""

    @abstractmethod
    def expect(self, agent: "Agent") -> None:
        """Receive from now on; the run's start is known."""

    def received(self, agent: "Agent", flow: str, index: int, result: "Result") -> None:
        """Take the result of a receiving end."""
        agent.report("receiver", self, flow, index, result)

    # -- on the sending host ---------------------------------------------------------------------------------

    @abstractmethod
    def start(self, agent: "Agent") -> None:
        """Begin to send: `start_s` is now."""

    def sent(self, agent: "Agent", port: int, flow: str, index: int, result: "Result") -> None:
        """Take the result of a sending end."""
        agent.report("sender", self, flow, index, result)

    # -- the result ------------------------------------------------------------------------------------------

    @abstractmethod
    def outcome(self, senders: Sequence[EndReport], receivers: Sequence[EndReport], until_s: float) -> Outcome:
        """Return what came of one flow, by the reports of its ends, in the order of their transfers.

        A run that was cut short went on until `until_s`.
        """

    def span(self, duration_s: float | None, until_s: float) -> tuple[float, float]:
        """Return when a flow that was to last `duration_s` began and ended."""
        end_s = until_s if duration_s is None else min(self.start_s + duration_s, until_s)
        return float(self.start_s), float(max(end_s, self.start_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamWorkload(Workload):
    """A workload of TCP connections: one after the other on each port, and each timed by itself."""

    def bind(self, agent: "Agent") -> None:
        """See Workload."""
        for port, flow in self.ports().items():
            agent.bind(port, flow)

    def expect(self, agent: "Agent") -> None:
        """See Workload."""
        for port, flow in self.ports().items():
            agent.accept(self, port, flow)

    def received(self, agent: "Agent", flow: str, index: int, result: "Result") -> None:
        """See Workload."""
        if index + 1 == self.transfers // len(self.ports()):
            agent.end_counting(flow)
        agent.report("receiver", self, flow, index, result)

    def outcome(self, senders: Sequence[EndReport], receivers: Sequence[EndReport], until_s: float) -> Outcome:
        """See Workload."""
        times = seconds_of(senders)
        nbytes = sum(report["bytes"] for report in receivers)
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
            span=(senders[0]["started_ns"] / 1e9, senders[-1]["finished_ns"] / 1e9),
            duration_s=sum(times),
            finished=True,
            intact=intact(receivers) and same_streams(senders, receivers),
            transfer_s=times,
        )


def intact(receivers: Sequence[EndReport]) -> bool:
    """Whether all that was read is as it was written."""
    return all(report["intact"] for report in receivers)


def same_streams(senders: Sequence[EndReport], receivers: Sequence[EndReport]) -> bool:
    """Whether both ends saw the same streams, complete and not merely unspoilt."""
    return [_stream(report) for report in senders] == [_stream(report) for report in receivers]


def _stream(report: EndReport) -> tuple[int, Any]:
    return report["bytes"], report.get("sha256")


def seconds_of(reports: Sequence[EndReport]) -> tuple[float, ...]:
    """Return how long each complete transfer took."""
    return tuple((report["finished_ns"] - report["started_ns"]) / 1e9 for report in reports if report["complete"])


@dataclass(frozen=True, kw_only=True)
class WorkloadPlugin:
    """A workload as scenarios know it: `kind` is its name, the fields of its dataclass stand beside that."""

    name: str
    #: in a line, for the table in docs/scenarios.md
    summary: str
    options: type[Workload]
    #: options as a scenario gives them, for tests: some seconds at most on a link of 1 Mbit/s
    example: Mapping[str, Any]


WORKLOADS: Final = Registry("hosts.workloads", "WORKLOAD", WorkloadPlugin)


def to_dict(workload: Workload) -> dict[str, Any]:
    """Return the workload as a JSON-able dictionary with its `kind`."""
    return {"kind": workload.kind, **asdict(workload)}


def from_dict(raw: Mapping[str, Any]) -> Workload:
    """Return the workload that `to_dict` gave; raises ValueError in one line when it is something else."""
    plugin = WORKLOADS.get(raw.get("kind", ""))
    if plugin is None:
        raise ValueError(f"workload kind {raw.get('kind')!r}: choose from {', '.join(WORKLOADS)}")
    values = {key: value for key, value in raw.items() if key != "kind"}
    unknown = values.keys() - {field.name for field in fields(plugin.options)}
    if unknown:
        raise ValueError(f"workload {plugin.name} has no {', '.join(sorted(unknown))}")
    try:
        return plugin.options(**values)
    except TypeError as error:
        raise ValueError(f"workload {plugin.name}: {error}") from None


def without_end(workload: Any) -> Any:
    """Return a workload whose duration never ends."""
    return replace(workload, duration_s=_ENDLESS_S)


def sender_of(workload: Workload) -> Host:
    """Return the host that sends it."""
    return SENDERS[workload.direction]


def agent_config(
    host: Host,
    workloads: Sequence[Workload],
    *,
    peer: str,
    namespace: str | None = None,
    seed: int = 1,
    probe_interval_ms: int = 100,
    tcp: str | None = None,
    delayed_ack: bool = False,
    receive_buffer_bytes: int | None = None,
    again_s: float | None = None,
    tun_fd: int | None = None,
) -> dict[str, Any]:
    """Return the configuration line for one host's agent: it sends and receives what concerns that host.

    `peer` is the other host's address. `tcp` is the TCP it speaks: `user:NAME`, or any other name for the kernel's,
    whose profile says `delayed_ack`. `receive_buffer_bytes` is that of our own TCP; None: its profile's. `again_s`
    after its connection has broken, a bulk that is limited by time alone begins again; None: never. `tun_fd` is an open
    /dev/net/tun that the agent inherits, for our own TCP; None: it opens the device. Raises HostError when two
    workloads share a port.
    """
    check_ports(workloads)
    return {
        "host": host,
        "namespace": namespace,
        "peer": peer,
        "seed": seed,
        "probe_interval_ms": probe_interval_ms,
        "tcp": tcp,
        "delayed_ack": delayed_ack,
        "receive_buffer_bytes": receive_buffer_bytes,
        "again_s": again_s,
        "tun_fd": tun_fd,
        "send": [to_dict(workload) for workload in workloads if sender_of(workload) == host],
        "receive": [to_dict(workload) for workload in workloads if sender_of(workload) != host],
    }


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
