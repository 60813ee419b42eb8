"""The messages between a run and its processes: hosts (`agent_process.py`), stations
(`testbed/live/station_process.py`) and the proxy of split connections (`split_proxy.py`).

A message is a JSON object on a line: its kind, which is the name of its class, and its fields, as in
`{"go":{"epoch_ns":5}}`. `codec.py` says how values become JSON. The first message to a process is its configuration.
Times are CLOCK_MONOTONIC ns where a field says so, and otherwise ns since the run's start.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, TypeVar

from common.sides import Host, Side
from hosts.codec import Kinds, codec
from hosts.engine.results import EndReport
from hosts.engine.split_pairs import SplitCounters
from hosts.kernel.network import TAP_NAME
from hosts.workloads import WORKLOADS, Workload, check_ports
from linklayer.filters.filter import Guess, Loss
from linklayer.station_counts import StationFinal, StationReport
from telemetry.records import AccessRecord, FlowRecord, PhyRecord, StationRecord, TcpRecord
from telemetry.views import PhyView

# -- to a process --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """A host's agent. Raises HostError when two workloads share a port."""

    host: Host
    #: IPv4 address of the other host
    peer: str
    #: of the whole run: a host sends those of its own direction and receives the others
    workloads: tuple[Annotated[Workload, Kinds(WORKLOADS)], ...] = ()
    #: network namespace; None: that of the process
    namespace: str | None = None
    seed: int = 1
    probe_interval_ms: int = 100
    #: `user:NAME` for our own TCP; any other name, or None: the kernel's
    tcp: str | None = None
    #: of our own TCP: `recovery` and `growth` that are not its profile's, each with its `name` and options
    tcp_changes: Mapping[str, Any] = field(default_factory=dict)
    #: of the kernel's TCP: delayed ACKs from the start
    delayed_ack: bool = False
    #: of our own TCP; None: its profile's
    receive_buffer_bytes: int | None = None
    #: pause before a bulk begins again: without a size after its connection broke, with a size after the peer refused
    #: it; None: never again
    again_s: float | None = None
    #: an open /dev/net/tun that the agent inherits, for our own TCP; None: it opens the device
    tun_fd: int | None = None
    #: for logs that workloads ask for; None: there is none
    folder: str | None = None
    #: own IPv4 address, for programs of others; None: not told
    address: str | None = None
    #: the other host's address on the second link, for MPTCP; None: there is one link
    second_peer: str | None = None

    def __post_init__(self) -> None:
        if self.probe_interval_ms <= 0:
            raise ValueError("probe_interval_ms must be above 0")
        check_ports(self.workloads)


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitConfig:
    """The proxy of split connections."""

    namespace: str
    #: IPv4 address of the mobile host
    mobile: str
    #: octets held of each direction of a connection
    buffer_bytes: int
    #: profile of our own TCP on the mobile host's side; None: the kernel's TCP, as on the wired side
    wireless: str | None

    def __post_init__(self) -> None:
        if self.buffer_bytes <= 0:
            raise ValueError(f"buffer_bytes is {self.buffer_bytes}: must be above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class StationConfig:
    """A station: its scenario and its part of the tier's medium."""

    #: values of the scenario's keys, as in a file
    scenario: Mapping[str, Any]
    #: the direction that it transmits on
    side: Side
    #: for traces and recordings
    folder: str
    #: network namespace of the TAP; None: that of the process
    namespace: str | None = None
    tap: str = TAP_NAME
    #: makes the random numbers of this start differ from those of earlier ones with the same seed: a peer that kept
    #: running must not take the new station for the one of its old session
    start: int | None = None
    #: the medium's values for the radio: the descriptor of a socket, or a device (testbed/live/media)
    wiring: Mapping[str, Any] = field(default_factory=dict)
    #: an open /dev/net/tun that the station inherits, where it may not open the device
    tun_fd: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Go:
    """The run's start."""

    #: CLOCK_MONOTONIC, the same for all processes; may lie ahead
    epoch_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """To a host: stop the senders' data, or let it go on."""

    paused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StationChange:
    """To a station: the scenario from now on; only errors, link scheme and ELN may differ."""

    scenario: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """To a station: whether to send views of the radio."""

    watched: bool


@dataclass(frozen=True, slots=True)
class Stop:
    """End; a host resets and reports unfinished flows. The end of the input means the same."""


# -- from a process ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Started:
    """A station's radio runs, and its TAP exists."""

    #: what the radio, if any, says of itself
    radio: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ready:
    """A host has all its ports, a station its link, the proxy its routes."""


@dataclass(frozen=True, slots=True)
class Done:
    """All ends of a host have reported; it waits for Stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowBroken:
    """The connection of a bulk has broken, and begins again after `again_s`."""

    flow: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LossEvents:
    """Losses of TCP segments at a station, and guesses of its packet filters, since its report before."""

    #: CLOCK_MONOTONIC, as all times of losses and guesses: all before it are reported
    until_ns: int
    losses: tuple[Loss, ...]
    guesses: tuple[Guess, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transmissions:
    """The bursts of a station on a shared carrier since its report before."""

    #: begin and end of each, by the devices' clock
    spans_s: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """The process has failed, and ends with status 2."""

    #: one line
    text: str


Config = AgentConfig | SplitConfig | StationConfig
ToProcess = Config | Go | Pause | StationChange | Watch | Stop
FromProcess = (
    Started
    | Ready
    | Done
    | TcpRecord
    | FlowRecord
    | FlowBroken
    | EndReport
    | StationReport
    | StationRecord
    | PhyRecord
    | AccessRecord
    | PhyView
    | Transmissions
    | LossEvents
    | StationFinal
    | SplitCounters
    | Error
)

# -- as lines ------------------------------------------------------------------------------------------------

M = TypeVar("M")


def encode(message: ToProcess | FromProcess) -> bytes:
    """Return the line of a message."""
    return json.dumps(codec(ToProcess | FromProcess).encode(message), separators=(",", ":")).encode() + b"\n"


class Decoder(Generic[M]):
    """Makes messages out of the octets of a pipe; `kinds` is the union of those expected."""

    def __init__(self, kinds: Any) -> None:
        self._codec = codec(kinds)
        self._buffer = b""

    def feed(self, data: bytes) -> list[M]:
        """Return the messages that are complete. Raises ValueError in one line."""
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        return [self._message(line) for line in lines if line.strip()]

    def _message(self, line: bytes) -> M:
        try:
            value = json.loads(line)
        except ValueError:
            raise ValueError(f"{line[:60]!r} is no message: must be a JSON object") from None
        message: M = self._codec.decode(value, "message")
        return message
