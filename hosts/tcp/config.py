"""The configuration of a connection: groups of options (`options.py`), a loss recovery and a window growth.

A profile (`profiles/`) is a configuration, or another one with other values of a few options (`TcpConfig.but`). So the
options of all groups, recoveries and growths have different names.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, Final

from common.options import check_ranges
from hosts.tcp.growth import GROWTHS
from hosts.tcp.options import (
    MAX_UNSCALED_WINDOW,
    MAX_WINDOW_SCALE,
    AckOptions,
    BufferOptions,
    HandshakeOptions,
    LossOptions,
    LtOptions,
    StartOptions,
    TimerOptions,
)
from hosts.tcp.recovery import RECOVERIES

#: the parts of a connection that are plugins, each with its registry
SEAMS: Final[Mapping[str, Mapping[str, Any]]] = {"recovery": RECOVERIES, "growth": GROWTHS}


@dataclass(frozen=True)
class NamedOptions:
    """One recovery or growth among all, by its name, and its options."""

    name: str
    options: Any


def choose(seam: str, name: str, like: Any = None, **options: Any) -> NamedOptions:
    """Return the `recovery` or the `growth` of that name. Options not given are those of `like`, another's options, as
    far as both have them, and else the defaults. Raises ValueError for an unknown name or option.
    """
    plugins = SEAMS[seam]
    if name not in plugins:
        raise ValueError(f"{seam} is {name!r}: must be one of {', '.join(plugins)}")
    kind = plugins[name].options
    known = [each.name for each in fields(kind)]
    for option in options:
        if option not in known:
            raise ValueError(f"{seam} {name} has no option {option}: it has {', '.join(known) or 'none'}")
    kept = {option: getattr(like, option) for option in known if hasattr(like, option)}
    return NamedOptions(name, kind(**{**kept, **options}))


@dataclass(frozen=True, kw_only=True)
class TcpConfig:
    """The configuration of one connection. Raises ValueError when an option is out of range."""

    handshake: HandshakeOptions = field(default_factory=HandshakeOptions)
    loss: LossOptions = field(default_factory=LossOptions)
    #: how lost segments are found and repaired (`recovery/`)
    recovery: NamedOptions = field(default_factory=partial(choose, "recovery", "sack"))
    start: StartOptions = field(default_factory=StartOptions)
    #: how the congestion window opens, and how much of it a loss leaves (`growth/`)
    growth: NamedOptions = field(default_factory=partial(choose, "growth", "standard"))
    lt: LtOptions = field(default_factory=LtOptions)
    acks: AckOptions = field(default_factory=AckOptions)
    timers: TimerOptions = field(default_factory=TimerOptions)
    buffers: BufferOptions = field(default_factory=BufferOptions)

    def __post_init__(self) -> None:
        for name, part in self._parts().items():
            check_ranges(part.options if name in SEAMS else part)
        mss, buffers, acks, timers = self.handshake.mss, self.buffers, self.acks, self.timers
        if acks.ack_at_tick and not acks.delayed_ack_ns:
            raise ValueError("delayed_ack_ns is 0: must be above 0 where ack_at_tick is set")
        if timers.min_rto_ns > timers.max_rto_ns:
            raise ValueError(f"max_rto_ns is {timers.max_rto_ns}: must be min_rto_ns or more")
        if self.lt.min_mss > mss:
            raise ValueError(f"min_mss is {self.lt.min_mss}: must be mss, {mss}, at most")
        if timers.tick_ns and self.handshake.timestamps:
            raise ValueError("timestamps is True: must be off where there is a tick_ns")
        if self.handshake.accecn and (self.lt.proactive_fec or self.lt.reactive_fec):
            # RFC 9768 counts the marks of packets; FEC segments are data of no count (docs/lt-tcp.md)
            raise ValueError("accecn is True: must be off where there is proactive_fec or reactive_fec")
        for name in ("send_buffer", "written_ahead"):
            nbytes = getattr(buffers, name)
            if nbytes is not None and nbytes < mss:
                raise ValueError(f"{name} is {nbytes}: must be mss or more")
        if buffers.receive_buffer > self.largest_window:
            raise ValueError(f"receive_buffer is {buffers.receive_buffer}: must be {self.largest_window} at most")

    @property
    def largest_window(self) -> int:
        """The largest window that this end can offer."""
        return MAX_UNSCALED_WINDOW << (MAX_WINDOW_SCALE if self.handshake.window_scaling else 0)

    def but(self, **changes: Any) -> "TcpConfig":
        """Return this configuration with other values of some options of any group, by their names.

        `recovery` and `growth` are names, or mappings with `name` and options; a new one has the values of the options
        that it shares with the present one. Raises ValueError for an unknown option.
        """
        parts = self._parts()
        for seam in SEAMS:
            if seam in changes:
                new = changes.pop(seam)
                given = {"name": new} if isinstance(new, str) else new
                parts[seam] = choose(seam, like=parts[seam].options, **{"name": parts[seam].name, **given})
        for name, part in parts.items():
            options = part.options if name in SEAMS else part
            given = {each.name: changes.pop(each.name) for each in fields(options) if each.name in changes}
            if given:
                changed = replace(options, **given)
                parts[name] = NamedOptions(part.name, changed) if name in SEAMS else changed
        if changes:
            raise ValueError(f"{', '.join(changes)}: this TCP has no such option")
        return TcpConfig(**parts)

    def _parts(self) -> dict[str, Any]:
        return {part.name: getattr(self, part.name) for part in fields(self)}
