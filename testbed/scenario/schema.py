"""The schema of a scenario: what to run, on any tier.

Units are in the names (`rate_bps`, `delay_ms`). docs/scenarios.md describes every key. `file.py` reads them.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from channel.delay_profiles import Tap, profile
from channel.errors import ERROR_MODELS
from common.options import Bytes, NotNegative, Positive, Probability, Span
from hosts.kernel_profiles import PROFILES, USER_PREFIX
from hosts.tcp.profiles import USER_PROFILES
from hosts.workloads import Bulk, Host, OnOffUdp, Short, Workload, check_ports
from linklayer.classify import DSCP_EF, DSCP_VOICE_ADMIT, UDP
from linklayer.filters import FILTERS
from linklayer.filters.filter import FilterPlugin
from linklayer.schemes import SCHEMES
from testbed.scenario.plugin_options import Part, options_of, part_of, parts_of, union_of, with_parts

Tier = Literal["model", "emulated", "vusrp", "usrp"]
Side = Literal["up", "down"]
#: up is from ST to BAS (the papers' return link), down the other way
SIDES: tuple[Side, ...] = ("up", "down")
#: which station sends on a side
STATIONS: Mapping[Side, Literal["st", "bas"]] = MappingProxyType({"up": "st", "down": "bas"})

#: the TCP of tier `model` where a scenario names none: the nearest to what kernels do by default that has a name here
MODEL_TCP = "sack"
MAX_RATE_SPS = 50_000_000
#: a clean channel for every modulation
DEFAULT_SNR_DB = 40.0


def user_tcp(tcp: str) -> str:
    """Return the name of a userspace TCP without the prefix that live tiers need."""
    return tcp.removeprefix(USER_PREFIX)


def check_tcp(tier: Tier, tcp: str, key: str = "tcp") -> None:
    """Raise ValueError unless hosts of a tier can speak the TCP of that name, which the scenario has at `key`."""
    if tier == "model":
        if user_tcp(tcp) not in USER_PROFILES:
            raise ValueError(
                f"{key} {tcp!r} cannot run on tier model, which has no kernel: choose from {', '.join(USER_PROFILES)}"
            )
    elif tcp not in PROFILES and not (tcp.startswith(USER_PREFIX) and user_tcp(tcp) in USER_PROFILES):
        ours = ", ".join(f"{USER_PREFIX}{name}" for name in USER_PROFILES)
        raise ValueError(f"{key} {tcp!r} is no profile: choose from {', '.join(PROFILES)}, or of our own TCPs {ours}")


def other(side: Side) -> Side:
    """The opposite direction."""
    return "down" if side == "up" else "up"


class DirectionError(ValueError):
    """What is wrong with `up` or `down` of a channel."""

    def __init__(self, side: Side, cause: ValidationError) -> None:
        super().__init__(f"{side}: {cause}")
        self.side = side
        self.cause = cause


# -- the link ------------------------------------------------------------------------------------------------


class FastOptions(Part):
    """Which packets go without ARQ."""

    dscp: frozenset[Annotated[int, Field(ge=0, le=63)]] = frozenset({DSCP_VOICE_ADMIT, DSCP_EF})
    #: IP protocol numbers
    protocols: frozenset[Annotated[int, Field(ge=0, le=255)]] = frozenset({UDP})


#: the options of schemes and of packet filters, by their key
LINK_PARTS: Mapping[str, type[Part]] = {
    key: part_of(options, Part)
    for key, options in (
        *((scheme.options_key, scheme.options) for scheme in SCHEMES.values()),
        *((filter_.options_key, filter_.options) for filter_ in FILTERS.values()),
    )
    if key
}

if TYPE_CHECKING:
    LinkParts = Part
else:
    LinkParts = with_parts("LinkParts", LINK_PARTS)


class LinkOptions(LinkParts):
    """What the two stations run between their IP interfaces."""

    scheme: str = "slacp"
    #: per station; with a scheme that has flow control
    ip_queue_bytes: Bytes = 64_000
    fast: FastOptions = FastOptions()
    #: packet filters beside the scheme's own, by their names (docs/filters.md)
    filters: tuple[str, ...] = ()
    #: short for the filter `eln-ends` or `eln-base` (docs/eln.md)
    eln: Literal["none", "ends", "base"] = "none"
    #: schemes that split TCP connections: what the base station holds of one
    split_buffer_bytes: Bytes = 65_536

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, raw: Any) -> Any:
        """Let `filters: tail` stand for `filters: [tail]`."""
        if isinstance(raw, dict) and isinstance(raw.get("filters"), str):
            return {**raw, "filters": (raw["filters"],)}
        return raw

    @model_validator(mode="after")
    def _check(self) -> "LinkOptions":
        if self.scheme not in SCHEMES:
            raise ValueError(f"scheme {self.scheme!r} is unknown: choose from {', '.join(SCHEMES)}")
        for name in self.filters:
            if name not in FILTERS:
                raise ValueError(f"filters: {name!r} is unknown: choose from {', '.join(FILTERS)}")
        names = [plugin.name for plugin in self.packet_filters()]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"filters: {name!r} is there twice, by filters, scheme or eln: name it once")
        return self

    def packet_filters(self) -> tuple[FilterPlugin, ...]:
        """Return the packet filters in front of the link, at whichever end: the scheme's, then the others."""
        eln = () if self.eln == "none" else (f"eln-{self.eln}",)
        return (*SCHEMES[self.scheme].filters, *(FILTERS[name] for name in (*self.filters, *eln)))

    @property
    def resends(self) -> bool:
        """Whether packet filters put packets on the link again."""
        return any(plugin.resends for plugin in self.packet_filters())

    def scheme_options(self) -> Any:
        """Return the options of the scheme, of its own dataclass."""
        scheme = SCHEMES[self.scheme]
        return self.options_at(scheme.options_key, scheme.options)

    def options_at(self, key: str, options: type[Any]) -> Any:
        """Return the options of a scheme or packet filter that stand at `key`, of their dataclass."""
        return options_of(getattr(self, key), options) if key else options()


# -- the medium ----------------------------------------------------------------------------------------------


class ErrorsPart(Part):
    """An error model and its options."""

    model: str


#: by the model's name
ERROR_PARTS: Mapping[str, type[ErrorsPart]] = parts_of(ERROR_MODELS.values(), "model", ErrorsPart)

if TYPE_CHECKING:
    Errors = ErrorsPart
else:
    Errors = Annotated[union_of(ERROR_PARTS), Field(discriminator="model")]


def error_part(model: str, **options: Any) -> ErrorsPart:
    """Return an error model with its options, as a scenario has it."""
    return ERROR_PARTS[model](model=model, **options)


class Assignment(Part):
    """How the transmitter gets capacity; docs/channel.md explains the DAMA parameters."""

    kind: Literal["cra", "rbdc", "vbdc"] = "cra"
    superframe_ms: Positive | None = None
    signalling_ms: Positive | None = None
    #: RBDC
    timeout_ms: Positive | None = None
    drain_ms: Positive | None = None
    #: VBDC: shortest and longest wait for other terminals' traffic
    wait_ms: Span | None = None


class ExcessDelayOptions(Part):
    """With `probability` a frame, and everything behind it, is held for `hold_ms` (SLOWLINK)."""

    probability: Probability
    hold_ms: Positive


class FadingOptions(Part):
    """Multipath on the air of virtual radios (docs/radios.md)."""

    #: a published profile or one of ours (channel/delay_profiles.py)
    profile: str = "flat"
    doppler_hz: NotNegative = 0.0
    #: for the TDL profiles, which are published for a delay spread of one
    delay_spread_ns: Positive | None = None
    #: for profile rician: power of the line of sight over the scattered power
    k_db: float | None = None
    #: in place of a profile: recorded gains or taps; a relative path starts at the scenario's folder
    series: Path | None = None

    @model_validator(mode="after")
    def _check(self) -> "FadingOptions":
        if self.series is not None and (self.profile != "flat" or self.doppler_hz):
            raise ValueError("series stands in place of a profile: give one or the other")
        self.taps()
        return self

    def taps(self) -> tuple[Tap, ...]:
        """Return the taps of the multipath channel; a series brings its own."""
        if self.series is not None:
            return ()
        return profile(self.profile, doppler_hz=self.doppler_hz, delay_spread_ns=self.delay_spread_ns, k_db=self.k_db)


class Direction(Part):
    """One direction of the medium."""

    rate_bps: Annotated[int, Field(gt=0)]
    delay_ms: NotNegative
    #: with flow control; default: two frames or 4 ms of the rate, whichever is more
    mac_buffer_bytes: Bytes | None = None
    #: without flow control, where this is the only queue; default: the IP queue and the MAC buffer together
    bare_buffer_bytes: Bytes | None = None
    framing: Literal["raw", "aal5", "aal5-llc"] = "raw"
    assignment: Assignment = Assignment()
    errors: Errors = error_part("none")
    excess_delay: ExcessDelayOptions | None = None
    #: virtual radios: mean SNR per sample over the whole sampled band, at the receiver
    snr_db: Annotated[float, Field(ge=-30, le=60)] = DEFAULT_SNR_DB
    fading: FadingOptions | None = None
    cfo_hz: float = 0.0


class Channel(Part):
    """The medium: what both directions share, and `up` (ST to BAS) and `down` where they differ."""

    rate_bps: Annotated[int, Field(gt=0)]
    delay_ms: NotNegative
    mac_buffer_bytes: Bytes | None = None
    bare_buffer_bytes: Bytes | None = None
    framing: Literal["raw", "aal5", "aal5-llc"] = "raw"
    assignment: Assignment = Assignment()
    #: short for errors: {model: bernoulli, per: ...}; goes before a `per` given there, and before model none
    per: Probability | None = None
    errors: Errors = error_part("none")
    excess_delay: ExcessDelayOptions | None = None
    #: virtual radios; `fading: eva` is short for {profile: eva}
    snr_db: Annotated[float, Field(ge=-30, le=60)] = DEFAULT_SNR_DB
    fading: FadingOptions | None = None
    cfo_hz: float = 0.0
    up: dict[str, Any] = Field(default_factory=dict)
    down: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, raw: Any) -> Any:
        """Let `errors: high` stand for `errors: {model: high}`, `assignment: vbdc` and `fading: eva` likewise."""
        return _expand_names(raw) if isinstance(raw, dict) else raw

    @model_validator(mode="after")
    def _check(self) -> "Channel":
        # every default filled in, a stored scenario has errors none beside its per
        if self.per is not None and self.errors.model not in ("bernoulli", "none"):
            raise ValueError(f"per and errors {self.errors.model} are both given: set one of them to null")
        for side in SIDES:
            own = self.own(side)
            if None not in (own.get("per"), own.get("errors")):
                raise ValueError(f"{side} has both per and errors: set one of them to null")
            try:
                self.direction(side)
            except ValidationError as error:
                raise DirectionError(side, error) from None
        return self

    def own(self, side: Side) -> dict[str, Any]:
        """What one direction has of its own."""
        return self.up if side == "up" else self.down

    def direction(self, side: Side) -> Direction:
        """Return one direction: what both share, overridden by what `up` or `down` says."""
        shared = {name: getattr(self, name) for name in Direction.model_fields}
        own = _expand_names(self.own(side))
        per = own.pop("per", None) if "errors" not in own else None
        if per is None and "errors" not in own:
            per = self.per
        if per is not None:
            shared["errors"] = error_part("bernoulli", per=per)
        return Direction.model_validate({**shared, **own})


def _expand_names(raw: dict[str, Any]) -> dict[str, Any]:
    raw = {key: value for key, value in raw.items() if value is not None}
    for key, inner in (("errors", "model"), ("assignment", "kind"), ("fading", "profile")):
        if isinstance(raw.get(key), str):
            raw[key] = {inner: raw[key]}
    return raw


class Wired(Part):
    """The path between BAS and h2, on tier `model`; elsewhere it is a veth."""

    rate_bps: Annotated[int, Field(gt=0)] = 100_000_000
    delay_ms: NotNegative = 0


# -- the radios ----------------------------------------------------------------------------------------------


class RadioOptions(Part):
    """The two stations' radios, on the tiers that have any."""

    phy: Literal["ofdm", "wifi"] = "ofdm"
    #: PHY ofdm
    modulation: Literal["bpsk", "qpsk", "qam16", "qam64"] = "qpsk"
    fec: str = "none"
    #: PHY wifi: modulation and code rate, as in qpsk-1/2
    encoding: str = "qpsk-1/2"
    #: complex samples per second, of both radios
    rate_sps: Annotated[float, Field(ge=100_000, le=MAX_RATE_SPS)] = 2_500_000
    #: carrier per direction (FDD)
    up_hz: Positive = 2.45e9
    down_hz: Positive = 2.40e9
    tx_gain_db: NotNegative | None = None
    rx_gain_db: NotNegative | Literal["auto"] = "auto"
    #: UHD device arguments of ST's and BAS's radio; tier usrp needs both
    devices: tuple[str, str] | None = None
    #: keep what both radios receive as SigMF recordings
    record: bool = False

    @model_validator(mode="after")
    def _check(self) -> "RadioOptions":
        if abs(self.up_hz - self.down_hz) < self.rate_sps:
            raise ValueError("up_hz and down_hz are closer than rate_sps: each direction needs a band of its own")
        if self.devices is not None and self.devices[0] == self.devices[1]:
            raise ValueError(f"devices are both {self.devices[0]!r}: name one by serial or addr for each station")
        return self

    def phy_options(self, hearing: Side) -> dict[str, str | float]:
        """The options of the PHY that is chosen, at the station that hears what is sent on a side."""
        if self.phy == "wifi":
            return {"encoding": self.encoding, "carrier_hz": self.carrier_hz(hearing)}
        return {"modulation": self.modulation, "fec": self.fec}

    def carrier_hz(self, side: Side) -> float:
        """The carrier of one direction."""
        return self.up_hz if side == "up" else self.down_hz


# -- the hosts -----------------------------------------------------------------------------------------------


class FlowOptions(Part):
    """What all workloads have."""

    flow: str | None = None
    direction: Side = "up"
    port: Annotated[int, Field(gt=0, lt=65536)] | None = None
    start_s: NotNegative = 0


class BulkOptions(FlowOptions):
    """One transfer or `flows` parallel ones, each limited by `bytes`, by `duration_s` or by both."""

    kind: Literal["bulk"]
    bytes: Bytes | None = None
    duration_s: Positive | None = None
    flows: int = Field(default=1, ge=1, le=1000)
    drain_s: NotNegative = 5
    #: the kernel's, by its name there, in place of the one that comes with the host's TCP
    congestion_control: Annotated[str, Field(pattern=r"^[a-z0-9_]{1,15}$")] | None = None


class ShortOptions(FlowOptions):
    """`count` transfers of `bytes`, one after the other."""

    kind: Literal["short"]
    bytes: Bytes = 50_000
    count: int = Field(default=1, ge=1)
    gap_ms: NotNegative = 0


class OnOffUdpOptions(FlowOptions):
    """UDP with exponential on and off times."""

    kind: Literal["onoff-udp"]
    rate_bps: Positive = 500_000
    on_ms: Positive = 100
    off_ms: NotNegative = 100
    packet_bytes: int = Field(default=1000, ge=44, le=65535)
    duration_s: Positive = 10
    drain_s: NotNegative = 1


WorkloadOptions = Annotated[BulkOptions | ShortOptions | OnOffUdpOptions, Field(discriminator="kind")]
_WORKLOADS: dict[str, type[Workload]] = {"bulk": Bulk, "short": Short, "onoff-udp": OnOffUdp}


class Timing(Part):
    """What a real-time tier must keep."""

    #: an event later than this is late
    late_bound_ms: Positive = 10
    #: more late events than this fraction fail the run
    late_fraction: Probability = 0.01
    probe_interval_ms: Annotated[int, Field(ge=1)] = 100


class Scenario(Part):
    """One experiment."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
    description: str = ""
    tier: Tier = "emulated"
    seed: Annotated[int, Field(ge=0)] = 1
    #: octets of the IP packet
    mtu: int = Field(default=1500, ge=576, le=9000)
    tcp: str = "cubic"
    #: that of h2, where it speaks another one
    tcp_h2: str | None = None
    #: what the hosts' TCP can hold of what has come, and about the largest window it offers; None: the profile's
    receive_buffer_bytes: Bytes | None = None
    link: LinkOptions = LinkOptions()
    channel: Channel
    wired: Wired = Wired()
    radio: RadioOptions = RadioOptions()
    workloads: Annotated[tuple[WorkloadOptions, ...], Field(min_length=1)]
    timing: Timing = Timing()
    #: write every frame's fate to a channel trace, for replay
    trace: bool = True
    #: write every frame on the air to capture files, for Wireshark
    capture: bool = False
    #: an unfinished run is ended after this
    limit_s: Positive = 1800

    @model_validator(mode="before")
    @classmethod
    def _choose_tcp(cls, raw: Any) -> Any:
        """Give a scenario that leaves its TCP open one that its tier has."""
        if isinstance(raw, dict) and raw.get("tcp") is None:
            tcp = MODEL_TCP if raw.get("tier") == "model" else cls.model_fields["tcp"].default
            raw = {**raw, "tcp": tcp}
        return raw

    @model_validator(mode="after")
    def _check(self) -> "Scenario":
        check_tcp(self.tier, self.tcp)
        if self.tier != "model" and self.wired != Wired():
            raise ValueError(
                f"wired is a veth on tier {self.tier}, without rate or delay: leave it out, or run --tier model"
            )
        if self.tcp_h2 is not None:
            check_tcp(self.tier, self.tcp_h2, "tcp_h2")
        if self.receive_buffer_bytes is not None:
            self._check_receive_buffer(self.receive_buffer_bytes)
        self._check_congestion_controls()
        for side in SIDES:
            buffer_bytes = self.channel.direction(side).mac_buffer_bytes
            if buffer_bytes is not None and buffer_bytes < self.max_frame_bytes:
                place = "channel" if buffer_bytes == self.channel.mac_buffer_bytes else f"channel.{side}"
                raise ValueError(
                    f"{place}.mac_buffer_bytes is {buffer_bytes}: must hold a frame of {self.max_frame_bytes} bytes"
                )
        try:
            check_ports(self.make_workloads())
        except RuntimeError as error:
            raise ValueError(f"workloads: {error}") from None
        return self

    def _check_receive_buffer(self, nbytes: int) -> None:
        for tcp in {self.tcp, self.tcp_of("h2")}:
            if self.tier == "model" or tcp.startswith(USER_PREFIX):
                try:
                    replace(USER_PROFILES[user_tcp(tcp)].config, receive_buffer=nbytes)
                except ValueError as error:
                    raise ValueError(f"receive_buffer_bytes: {tcp}: {error}") from None

    def _check_congestion_controls(self) -> None:
        for index, work in enumerate(self.workloads):
            if not isinstance(work, BulkOptions) or work.congestion_control is None:
                continue
            tcp = self.tcp_of("h1" if work.direction == "up" else "h2")
            if self.tier == "model" or tcp.startswith(USER_PREFIX):
                raise ValueError(
                    f"workloads.{index}.congestion_control is the kernel's, and the sender's tcp {tcp!r} is our own: "
                    "leave it out"
                )

    def tcp_of(self, host: Host) -> str:
        """Return the TCP a host speaks."""
        return self.tcp if host == "h1" or self.tcp_h2 is None else self.tcp_h2

    @property
    def tcps(self) -> str:
        """Both hosts' TCP, in few words."""
        return self.tcp if self.tcp_of("h2") == self.tcp else f"{self.tcp} and {self.tcp_h2}"

    @property
    def max_frame_bytes(self) -> int:
        """The largest frame on the air."""
        return self.mtu + SCHEMES[self.link.scheme].overhead_bytes

    def make_workloads(self) -> list[Workload]:
        """Return the workloads with ports and flow names given where the scenario leaves them open."""
        made: list[Workload] = []
        for index, options in enumerate(self.workloads):
            values = {k: v for k, v in options.model_dump(exclude={"kind"}).items() if v is not None}
            values.setdefault("port", 5001 + 1000 * index)
            values.setdefault("flow", options.kind if len(self.workloads) == 1 else f"{options.kind}{index + 1}")
            try:
                made.append(_WORKLOADS[options.kind](**values))
            except ValueError as error:
                raise ValueError(f"workloads.{index}: {error}") from None
        return made
