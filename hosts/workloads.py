"""What the hosts are to send: plain data, given to agents as JSON.

Read first: `hosts/agent.py` for the messages these travel in; docs/hosts.md for the list with examples.

Rules kept
- Direction `up` is from h1 to h2 (the papers' return link), `down` the other way. The receiver listens.
- A workload is valid once it exists: wrong values raise ValueError with one line.
- Ports are explicit, so that probes and captures can name flows.

Left out: anything that opens a socket (`hosts/flows.py`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Literal

from hosts.errors import HostError

Direction = Literal["up", "down"]
Host = Literal["h1", "h2"]


@dataclass(frozen=True, slots=True)
class Bulk:
    """One transfer, or `flows` parallel ones on consecutive ports, each limited by size, by time or by both.

    With a duration the sender stops writing after it and then waits at most `drain_s` for the receiver to
    have read everything; what is left after that is thrown away (RST).
    """

    kind: ClassVar[str] = "bulk"

    flow: str = "bulk"
    direction: Direction = "up"
    #: payload bytes of each flow
    bytes: int | None = None
    duration_s: float | None = None
    port: int = 5001
    flows: int = 1
    #: after the run's epoch
    start_s: float = 0.0
    drain_s: float = 5.0
    #: the kernel's, by its name there; None: the route's
    congestion_control: str | None = None

    def __post_init__(self) -> None:
        _check_common(self.flow, self.direction, self.port, self.start_s)
        _check(self.bytes is not None or self.duration_s is not None, "a bulk needs bytes or duration_s")
        _check(self.bytes is None or self.bytes > 0, "bytes must be above 0")
        _check(self.duration_s is None or self.duration_s > 0, "duration_s must be above 0")
        _check(1 <= self.flows <= 1000, "flows must be 1 to 1000")
        _check(self.drain_s >= 0, "drain_s must not be negative")
        _check(self.port + self.flows <= 65536, f"{self.flows} flows from port {self.port} on end above 65535")

    def ports(self) -> dict[int, str]:
        """Which flow each port carries."""
        if self.flows == 1:
            return {self.port: self.flow}
        return {self.port + i: f"{self.flow}-{i + 1}" for i in range(self.flows)}


@dataclass(frozen=True, slots=True)
class Short:
    """`count` transfers of `bytes` payload bytes, each on a new connection and timed by itself.

    The next one starts `gap_ms` after the one before has finished.
    """

    kind: ClassVar[str] = "short"

    flow: str = "short"
    direction: Direction = "up"
    bytes: int = 50_000
    count: int = 1
    gap_ms: float = 0.0
    port: int = 5501
    start_s: float = 0.0

    def __post_init__(self) -> None:
        _check_common(self.flow, self.direction, self.port, self.start_s)
        _check(self.bytes > 0, "bytes must be above 0")
        _check(self.count > 0, "count must be above 0")
        _check(self.gap_ms >= 0, "gap_ms must not be negative")

    def ports(self) -> dict[int, str]:
        """Which flow each port carries: one name for all of its connections."""
        return {self.port: self.flow}


@dataclass(frozen=True, slots=True)
class OnOffUdp:
    """UDP at a constant rate while on; the lengths of on and off periods are exponential, seeded by the run.

    `rate_bps` counts whole IP packets of `packet_bytes`. With `off_ms` 0 it is always on.
    """

    kind: ClassVar[str] = "onoff-udp"

    flow: str = "udp"
    direction: Direction = "up"
    rate_bps: float = 500_000.0
    #: mean lengths
    on_ms: float = 100.0
    off_ms: float = 100.0
    packet_bytes: int = 1000
    duration_s: float = 10.0
    port: int = 5801
    start_s: float = 0.0
    #: how long after the end of sending the receiver still counts packets
    drain_s: float = 1.0

    def __post_init__(self) -> None:
        _check_common(self.flow, self.direction, self.port, self.start_s)
        _check(self.rate_bps > 0, "rate_bps must be above 0")
        _check(self.on_ms > 0, "on_ms must be above 0")
        _check(self.off_ms >= 0, "off_ms must not be negative")
        _check(UDP_MIN_PACKET <= self.packet_bytes <= 65535, f"packet_bytes must be {UDP_MIN_PACKET} to 65535")
        _check(self.duration_s > 0, "duration_s must be above 0")
        _check(self.drain_s >= 0, "drain_s must not be negative")

    def ports(self) -> dict[int, str]:
        """Which flow each port carries."""
        return {self.port: self.flow}


#: IPv4 and UDP headers
UDP_HEADERS = 28
#: those, and the sequence number and time each packet carries
UDP_MIN_PACKET = UDP_HEADERS + 16

Workload = Bulk | Short | OnOffUdp
WORKLOADS: tuple[type[Workload], ...] = (Bulk, Short, OnOffUdp)


def to_dict(workload: Workload) -> dict[str, Any]:
    """The workload as a JSON-able dictionary with its `kind`."""
    return {"kind": workload.kind, **asdict(workload)}


def from_dict(raw: Mapping[str, Any]) -> Workload:
    """The workload `to_dict` gave; raises ValueError in one line when it is something else."""
    types = {cls.kind: cls for cls in WORKLOADS}
    cls = types.get(raw.get("kind", ""))
    if cls is None:
        raise ValueError(f"workload kind {raw.get('kind')!r}: choose from {', '.join(types)}")
    values = {key: value for key, value in raw.items() if key != "kind"}
    unknown = values.keys() - {field.name for field in fields(cls)}
    if unknown:
        raise ValueError(f"workload {cls.kind} has no {', '.join(sorted(unknown))}")
    try:
        return cls(**values)
    except TypeError as error:
        raise ValueError(f"workload {cls.kind}: {error}") from None


def sender_of(workload: Workload) -> Host:
    """The host that sends it."""
    return "h1" if workload.direction == "up" else "h2"


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
    """The configuration line for one host's agent: it sends and receives what concerns that host.

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


def _check_common(flow: str, direction: str, port: int, start_s: float) -> None:
    _check(bool(flow), "flow must have a name")
    _check(direction in ("up", "down"), f"direction {direction!r} must be up or down")
    _check(0 < port < 65536, f"port {port} must be 1 to 65535")
    _check(start_s >= 0, "start_s must not be negative")


def _check(good: bool, complaint: str) -> None:
    if not good:
        raise ValueError(complaint)
