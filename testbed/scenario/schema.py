"""The schema of a scenario, for all tiers.

Names have units as suffixes (`rate_bps`, `delay_ms`). docs/scenarios.md describes every key; `file.py` reads files.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, model_validator
from typing_extensions import override

from channel.capacity import CAPACITY_MODELS
from channel.delay_profiles import Tap, profile
from channel.errors import ERROR_MODELS
from common.options import Bytes, Milliseconds, NotNegative, OneOf, Positive, Probability
from common.sides import HOSTS, SIDES, Host, Side
from hosts.kernel.profiles import PROFILES, USER_PREFIX
from hosts.tcp.config import TcpConfig
from hosts.tcp.profiles import USER_PROFILES
from hosts.workloads import WORKLOADS, Workload, check_ports, sender_of
from hosts.workloads.mptcp import Mptcp
from linklayer.classify import DSCP_EF, DSCP_VOICE_ADMIT, UDP
from linklayer.filters import FILTERS
from linklayer.filters.filter import FilterPlugin
from linklayer.queues import QUEUES
from linklayer.schemes import SCHEMES
from testbed.scenario.changes import ChangeError, ScheduledChange, why_no_switch
from testbed.scenario.plugin_options import Choice, Part, options_of, part_of, with_parts
from testbed.scenario.radio import RADIO, RadioOptions
from testbed.scenario.settings import ScenarioError
from testbed.scenario.tcp import Tcp, TcpPart, check_tcp, shortened, user_tcp
from testbed.tiers import TIERS, Clock, names_of

#: high enough for every modulation to be free of errors
DEFAULT_SNR_DB = 40.0


class InnerError(ValueError):
    """An error below `place`: `up` or `down` of a channel, or the second link."""

    def __init__(self, place: str, cause: ValidationError) -> None:
        super().__init__(f"{place}: {cause}")
        self.place = place
        self.cause = cause


# -- the link ------------------------------------------------------------------------------------------------


class FastOptions(Part):
    """Selects the packets that are sent without ARQ."""

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


class QueuePart(Part):
    """A station's IP queue and its options."""

    kind: str


_QUEUE = Choice(QUEUES.values(), "kind", QueuePart, "drop-tail")


class LinkOptions(LinkParts):
    """The link between the IP interfaces of the two stations."""

    scheme: str = "slacp"
    #: size of each station's IP queue, which only schemes with flow control use; a scheme may have its own default
    ip_queue_bytes: Bytes = 64_000
    #: without `kind`, the queue of the scheme with these options; a scheme without its own has drop-tail
    queue: Annotated[QueuePart, _QUEUE] = _QUEUE.part("drop-tail")
    fast: FastOptions = FastOptions()
    #: packet filters beside the scheme's own, by their names (docs/filters.md); a name alone is a list of one
    filters: Annotated[tuple[str, ...], BeforeValidator(lambda raw: (raw,) if isinstance(raw, str) else raw)] = ()
    #: short for the filter `eln-ends` or `eln-base` (docs/eln.md)
    eln: Literal["none", "ends", "base"] = "none"
    #: schemes that split TCP connections: the base station's buffer per connection
    split_buffer_bytes: Bytes = 65_536

    @model_validator(mode="before")
    @classmethod
    def _choose_queue(cls, raw: Any) -> Any:
        """Fill in a missing queue, a missing kind of queue and a missing size with the scheme's."""
        scheme = (
            SCHEMES.get(str(raw.get("scheme", cls.model_fields["scheme"].default))) if isinstance(raw, dict) else None
        )
        if scheme is None:
            return raw
        queue, size = raw.get("queue"), raw.get("ip_queue_bytes")
        if queue is None or (isinstance(queue, dict) and queue.get("kind") is None):
            queue = {**scheme.queue, **_without_nulls(queue or {})}
        own = {"queue": queue or None, "ip_queue_bytes": scheme.ip_queue_bytes if size is None else size}
        return {**raw, **_without_nulls(own)}

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
        """Return the packet filters at both ends of the link: those of the scheme, then the others."""
        eln = () if self.eln == "none" else (f"eln-{self.eln}",)
        return (*SCHEMES[self.scheme].filters, *(FILTERS[name] for name in (*self.filters, *eln)))

    def scheme_options(self) -> Any:
        """Return the options of the scheme, as its dataclass."""
        scheme = SCHEMES[self.scheme]
        return self.options_at(scheme.options_key, scheme.options)

    def own_queue(self) -> dict[str, Any]:
        """Return the values of the queue that are the scheme's own defaults, and not those of the schema."""
        own = {name for name in ("queue", "ip_queue_bytes") if getattr(SCHEMES[self.scheme], name)}
        return self.model_dump(mode="json", include=own, exclude_none=True)

    def options_at(self, key: str, options: type[Any]) -> Any:
        """Return the options of a scheme or packet filter at `key`, as their dataclass."""
        return options_of(getattr(self, key), options) if key else options()


# -- the medium ----------------------------------------------------------------------------------------------


class ErrorsPart(Part):
    """An error model and its options."""

    model: str


_ERRORS = Choice(ERROR_MODELS.values(), "model", ErrorsPart)
#: an error model with its options, in the form of a scenario
error_part = _ERRORS.part


class AssignmentPart(Part):
    """The capacity model of the transmitter and its options; see docs/channel.md."""

    kind: str


# lenient: the cells of a paper differ in `kind` alone
_ASSIGNMENT = Choice(CAPACITY_MODELS.values(), "kind", AssignmentPart, "cra", lenient=True)


class ExcessDelayOptions(Part):
    """With `probability` a frame, and all frames behind it, are held for `hold_ms` (SLOWLINK)."""

    probability: Probability
    hold_ms: Milliseconds
    #: octets of frames that have left and not arrived, at most; then the transmitter waits; None: no limit
    buffer_bytes: Bytes | None = None


class FadingOptions(Part):
    """Multipath on the air of virtual radios (docs/radios.md)."""

    #: a published profile or one of ours (channel/delay_profiles.py)
    profile: str = "flat"
    doppler_hz: NotNegative = 0.0
    #: for the TDL profiles, which need it: their published delays are its multiples; None: for other profiles
    delay_spread_ns: Positive | None = None
    #: for profile rician, which needs it: power of the line of sight over the scattered power; None: for other profiles
    k_db: float | None = None
    #: in place of a profile: recorded gains or taps; a relative path starts at the scenario's folder; None: the profile
    series: Path | None = None

    @model_validator(mode="after")
    def _check(self) -> "FadingOptions":
        if self.series is not None and (self.profile != "flat" or self.doppler_hz):
            raise ValueError("series stands in place of a profile: give one or the other")
        self.taps()
        return self

    def taps(self) -> tuple[Tap, ...]:
        """Return the taps of the multipath channel, none for a series."""
        if self.series is not None:
            return ()
        return profile(self.profile, doppler_hz=self.doppler_hz, delay_spread_ns=self.delay_spread_ns, k_db=self.k_db)


class Direction(Part):
    """One direction of the medium."""

    rate_bps: Annotated[int, Field(gt=0)]
    delay_ms: NotNegative
    #: with flow control; None: two frames or 4 ms of the rate, whichever is more
    mac_buffer_bytes: Bytes | None = None
    #: without flow control, where this is the only queue; None: the IP queue and the MAC buffer together
    bare_buffer_bytes: Bytes | None = None
    framing: Literal["raw", "aal5", "aal5-llc"] = "raw"
    assignment: Annotated[AssignmentPart, _ASSIGNMENT] = _ASSIGNMENT.part("cra")
    errors: Annotated[ErrorsPart, _ERRORS] = error_part("none")
    #: a hold of some frames (SLOWLINK); None: no such hold
    excess_delay: ExcessDelayOptions | None = None
    #: virtual radios: mean SNR per sample over the whole sampled band, at the receiver
    snr_db: Annotated[float, Field(ge=-30, le=60)] = DEFAULT_SNR_DB
    #: `eva` stands for `{profile: eva}`; None: no fading
    fading: Annotated[
        FadingOptions | None, BeforeValidator(lambda raw: {"profile": raw} if isinstance(raw, str) else raw)
    ] = None
    cfo_hz: float = 0.0

    @model_validator(mode="after")
    def _check_excess_delay(self) -> "Direction":
        if self.excess_delay is not None and self.excess_delay.buffer_bytes and self.assignment.kind != "cra":
            raise ValueError(f"excess_delay.buffer_bytes needs assignment cra, not {self.assignment.kind}")
        return self


class Channel(Direction):
    """The medium: the values that both directions share, and `up` (ST to BAS) and `down` where they differ."""

    #: short for errors: {model: bernoulli, per: ...}; goes before a `per` given there, and before model none;
    #: None: errors alone
    per: Probability | None = None
    up: dict[str, Any] = Field(default_factory=dict)
    down: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _expand(cls, raw: Any) -> Any:
        """Give a null key its default."""
        return _without_nulls(raw) if isinstance(raw, dict) else raw

    @model_validator(mode="after")
    def _check(self) -> "Channel":
        # a stored scenario has all defaults, so it has errors none beside its per
        if self.per is not None and self.errors.model not in ("bernoulli", "none"):
            raise ValueError(f"per and errors {self.errors.model} are both given: set one of them to null")
        for side in SIDES:
            own = self.own(side)
            if None not in (own.get("per"), own.get("errors")):
                raise ValueError(f"{side} has both per and errors: set one of them to null")
            try:
                self.direction(side)
            except ValidationError as error:
                raise InnerError(side, error) from None
        return self

    def own(self, side: Side) -> dict[str, Any]:
        """Return the settings of one direction alone."""
        return self.up if side == "up" else self.down

    def direction(self, side: Side) -> Direction:
        """Return one direction: the shared settings, overridden by those of `up` or `down`."""
        shared = {name: getattr(self, name) for name in Direction.model_fields}
        own = _without_nulls(self.own(side))
        per = own.pop("per", None) if "errors" not in own else None
        if per is None and "errors" not in own:
            per = self.per
        if per is not None:
            shared["errors"] = error_part("bernoulli", per=per)
        return Direction.model_validate({**shared, **own})


def _without_nulls(raw: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in raw.items() if value is not None}


class Wired(Part):
    """The path between BAS and h2, on tier `model`; elsewhere it is a veth."""

    rate_bps: Annotated[int, Field(gt=0)] = 100_000_000
    delay_ms: NotNegative = 0


class SecondLink(Part):
    """Another link between the hosts, beside the first, with stations and a channel of its own; only MPTCP uses it."""

    link: LinkOptions = LinkOptions()
    channel: Channel


# -- the hosts -----------------------------------------------------------------------------------------------


class WorkloadPart(Part):
    """A workload and its options; `make_workloads` fills in a missing flow name and port."""

    kind: str
    flow: Annotated[str, Field(min_length=1)] | None = None
    port: Annotated[int, Field(gt=0, lt=65536)] | None = None
    direction: Side = "up"
    start_s: NotNegative = 0

    @override
    def option_values(self, names: Sequence[str]) -> dict[str, Any]:
        values = super().option_values(names)
        return {name: value for name, value in values.items() if value is not None or name not in ("flow", "port")}


_WORKLOAD = Choice(WORKLOADS.values(), "kind", WorkloadPart)


class Timing(Part):
    """Limits of lateness on real-time tiers, and the interval of records."""

    #: an event later than this is late
    late_bound_ms: Positive = 10
    #: more late events than this fraction fail the run
    late_fraction: Probability = 0.01
    probe_interval_ms: Annotated[int, Field(ge=1)] = 100


class Scenario(Part):
    """One experiment."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=100)]
    description: str = ""
    tier: Annotated[str, OneOf(tuple(TIERS))] = "emulated"
    #: None: the tier's usual one
    clock: Clock | None = None
    seed: Annotated[int, Field(ge=0)] = 1
    #: octets of the IP packet
    mtu: int = Field(default=1500, ge=128, le=9000)
    tcp: Tcp = "cubic"
    #: the TCP of h2; None: as h1
    tcp_h2: Tcp | None = None
    #: receive buffer of the hosts' TCP, which limits the offered window; None: the profile's
    receive_buffer_bytes: Bytes | None = None
    link: LinkOptions = LinkOptions()
    channel: Channel
    #: a link beside the first, for MPTCP; None: there is none
    second_link: SecondLink | None = None
    wired: Wired = Wired()
    radio: Annotated[RadioOptions, RADIO] = RADIO.part("ofdm")
    workloads: Annotated[tuple[Annotated[WorkloadPart, _WORKLOAD], ...], Field(min_length=1)]
    timing: Timing = Timing()
    #: what changes while the run goes on
    changes: tuple[ScheduledChange, ...] = ()
    #: write the fate of every frame to a channel trace, for replay
    trace: bool = True
    #: write every frame on the air to capture files, for Wireshark
    capture: bool = False
    #: an unfinished run is ended after this
    limit_s: Positive = 1800

    @model_validator(mode="before")
    @classmethod
    def _choose_tcp(cls, raw: Any) -> Any:
        """Fill in a missing TCP with the tier's default."""
        if not isinstance(raw, dict):
            return raw
        tier = TIERS.get(str(raw.get("tier", cls.model_fields["tier"].default)))
        # the field's own validator refuses an unknown tier
        default = cls.model_fields["tcp"].default if tier is None else tier.default_tcp
        keys = ("tcp", *(key for key in ("tcp_h2",) if raw.get(key) is not None))
        return {
            **raw,
            **{key: shortened(raw.get(key), key, default, kernel=tier is not None and tier.kernel) for key in keys},
        }

    @model_validator(mode="after")
    def _check(self) -> "Scenario":
        tier = TIERS[self.tier]
        if self.clock not in (None, *tier.clocks):
            raise ValueError(f"tier {self.tier} has no {self.clock} clock, only its {' and '.join(tier.clocks)} one")
        for key, host in zip(("tcp", "tcp_h2"), HOSTS, strict=True):
            check_tcp(tier, self.tcp_of(host), key)
        if tier.kernel and self.wired != Wired():
            raise ValueError(
                f"wired is a veth on tier {self.tier}, without rate or delay: leave it out, or run --tier "
                + names_of(simulated=True)
            )
        self._check_own_tcps()
        self._check_workloads()
        self._check_mptcp()
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
        for _ in self.steps():
            # a scenario is valid before and after each change
            pass
        return self

    def _check_own_tcps(self) -> None:
        for host in filter(lambda host: self._is_ours(self.tcp_of(host)), HOSTS):
            config = self.own_tcp(host)
            try:
                config.but(receive_buffer=self.receive_buffer_bytes or config.buffers.receive_buffer)
            except ValueError as error:
                raise ValueError(f"receive_buffer_bytes: {self.tcp_of(host)}: {error}") from None

    def _check_workloads(self) -> None:
        tier = TIERS[self.tier]
        for index, work in enumerate(self.make_workloads()):
            place = f"workloads.{index}"
            if tier.simulated and work.live_option is not None:
                instead = f"run --tier {names_of(simulated=False)}"
                if work.live_option == "kind":
                    raise ValueError(f"{place}.kind {work.kind} needs Linux, and tier {tier.name} has none: {instead}")
                raise ValueError(f"{place}.{work.live_option} is not for tier {tier.name}: leave it out, or {instead}")
            if self.mtu < work.least_mtu_bytes:
                raise ValueError(
                    f"{place}: {work.kind} needs an mtu of {work.least_mtu_bytes} at least, not {self.mtu}"
                )
            tcp = self.tcp_of(sender_of(work))
            if work.kernels_option and self._is_ours(tcp):
                raise ValueError(
                    f"workloads.{index}.{work.kernels_option} is the kernel's, and the sender's tcp {tcp!r} is our own:"
                    " leave it out"
                )

    def _check_mptcp(self) -> None:
        """Refuse parts of a scenario that MPTCP or the second link cannot have beside it."""
        tier, flows = TIERS[self.tier], [work for work in self.make_workloads() if isinstance(work, Mptcp)]
        if flows:
            for key, host in zip(("tcp", "tcp_h2"), HOSTS, strict=True):
                tcp = self.tcp_of(host)
                if self._is_ours(tcp) or not PROFILES[tcp].with_mptcp:
                    raise ValueError(f"{key} {tcp!r} has no MPTCP: take another profile of the kernel's TCP")
            if SCHEMES[self.link.scheme].split is not None:
                raise ValueError(f"link.scheme {self.link.scheme} splits connections, which ends MPTCP: take another")
        if self.second_link is None:
            return
        why = ""
        if not tier.second_link:
            why = f"tier {tier.name} has one link"
        elif not flows:
            why = "only workloads of kind mptcp use it, and there is none"
        elif len({work.direction for work in flows}) > 1:
            why = "the paths are set up for one sending host, so all workloads of kind mptcp must have one direction"
        elif self.capture or self.radio.record:
            why = f"{'capture' if self.capture else 'radio.record'} keeps the frames of one link only"
        elif self.radio.access_options() is not None:
            why = "its stations cannot share a carrier: give radio two carriers"
        else:
            for key, link in (("link", self.link), ("second_link.link", self.second_link.link)):
                if SCHEMES[link.scheme].split is not None:
                    why = f"{key}.scheme {link.scheme} splits connections, which ends MPTCP"
                elif link.packet_filters():
                    names = ", ".join(plugin.name for plugin in link.packet_filters())
                    why = f"{key} has packet filters ({names}), which see one path of a connection"
        if why:
            raise ValueError(f"second_link: {why}")
        try:
            self.of_second_link()
        except ValidationError as error:
            raise InnerError("second_link", error) from None

    def of_second_link(self) -> "Scenario | None":
        """Return the scenario of the second link's stations: the same run, over that link alone."""
        if self.second_link is None:
            return None
        # losses on both links are independent
        seed = Random(f"{self.seed}/second link").getrandbits(32)
        raw = self.plain()
        second = raw.pop("second_link")
        raw.pop("changes", None)
        return Scenario.model_validate({**raw, "link": {}, **second, "seed": seed, "trace": False})

    def _is_ours(self, tcp: str) -> bool:
        return tcp.startswith(USER_PREFIX) or not TIERS[self.tier].kernel

    def tcp_of(self, host: Host) -> str:
        """Return the name of a host's TCP."""
        tcp = self._tcp(host)
        return tcp if isinstance(tcp, str) else tcp.profile

    def tcp_label(self, host: Host) -> str:
        """Return a host's TCP for display."""
        return str(self._tcp(host))

    def own_tcp(self, host: Host, **options: Any) -> TcpConfig:
        """Return the configuration of a host's TCP, which is our own, with further options."""
        return USER_PROFILES[user_tcp(self.tcp_of(host))].config.but(**self.tcp_changes(host), **options)

    def tcp_changes(self, host: Host) -> dict[str, dict[str, Any]]:
        """Return the recovery and the growth of a host's own TCP that are not its profile's (`TcpPart.changes`)."""
        tcp = self._tcp(host)
        return {} if isinstance(tcp, str) else tcp.changes()

    def _tcp(self, host: Host) -> str | TcpPart:
        return self.tcp if host == "h1" or self.tcp_h2 is None else self.tcp_h2

    @property
    def stem(self) -> str:
        """The name of its runs without their start times: scenario, tier, scheme, TCP, seed."""
        return f"{self.name}-{self.tier}-{self.link.scheme}-{self._tcp_word}-s{self.seed}"

    @property
    def _tcp_word(self) -> str:
        """The TCP of both hosts in the characters of folders; `-changed` stands for options of its own."""
        words = []
        for host in HOSTS:
            name = self.tcp_of(host)
            word = name.replace(":", "-") if TIERS[self.tier].kernel else user_tcp(name)
            words.append(word if self.tcp_label(host) == name else f"{word}-changed")
        return "-and-".join(dict.fromkeys(words))

    @property
    def tcps(self) -> str:
        """The TCP of both hosts, for display."""
        return " and ".join(dict.fromkeys(map(self.tcp_label, HOSTS)))

    @property
    def max_frame_bytes(self) -> int:
        """The largest frame on the air."""
        return self.mtu + SCHEMES[self.link.scheme].overhead_bytes

    def steps(self) -> Iterator[tuple[ScheduledChange, "Scenario"]]:
        """Yield the scheduled changes in their order, each with the scenario that holds from then on.

        Raises ValueError, whose message does not name the scenario.
        """
        before, raw = self, self.plain()
        raw.pop("changes", None)
        for index, change in sorted(enumerate(self.changes), key=lambda item: item[1].at_s):
            try:
                change.check_tier(TIERS[self.tier])
                change.apply(raw)
                after = Scenario.model_validate(raw)
            except ValidationError as error:
                raise ChangeError(index, error) from None
            except (ValueError, ScenarioError) as error:
                raise ValueError(f"changes.{index}.set: {error}") from None
            if after.link.scheme != before.link.scheme:
                for scheme in (before.link.scheme, after.link.scheme):
                    if why := why_no_switch(scheme):
                        raise ValueError(f"changes.{index}.set: {why}")
            yield change, after
            before = after

    def plain(self) -> dict[str, Any]:
        """Return the values that are not the defaults, as a file has them."""
        values = self.model_dump(mode="json", exclude_defaults=True)
        parts = [(values, self.link)]
        if self.second_link is not None:
            parts.append((values["second_link"], self.second_link.link))
        for part, link in parts:
            if own := link.own_queue():
                part["link"] = {**part.get("link", {}), **own}
        return values

    def make_workloads(self) -> list[Workload]:
        """Return the workloads; missing ports and flow names are filled in."""
        made: list[Workload] = []
        for index, part in enumerate(self.workloads):
            flow = part.kind if len(self.workloads) == 1 else f"{part.kind}{index + 1}"
            named = part.model_copy(update={"flow": part.flow or flow, "port": part.port or 5001 + 1000 * index})
            try:
                made.append(options_of(named, WORKLOADS[part.kind].options))
            except ValueError as error:
                raise ValueError(f"workloads.{index}: {error}") from None
        return made
