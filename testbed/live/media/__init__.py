"""Media of live runs: the carriers of frames between the two stations. A file each, which declares a `MEDIUM`.

Read first: `testbed/tiers/`, whose declarations name the media; `testbed/live/hop_radio.py`, the common part of radios.

A medium is open for the length of a run and yields a `Wiring` for each station. The station's process makes its radio
of it. Rule kept: GNU Radio is imported when a radio is made or checked, so that other media do without it.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from channel.hop import Hop
from common.registry import Registry
from common.sides import Side
from testbed.live.hop_radio import HopRadio
from testbed.results.frame_fates import FrameFates
from testbed.results.frame_trace import FrameTrace
from testbed.scenario.run_plan import AirPath, Plan


@dataclass(frozen=True, slots=True)
class Wiring:
    """The medium's part of a station's configuration, and the descriptors that its process inherits."""

    config: Mapping[str, Any]
    fds: tuple[int, ...] = field(default=())
    #: changes the air that the station transmits into; None where the air cannot be changed
    set_path: Callable[[AirPath], None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RadioContext:
    """The inputs of a medium for the radio of the station that transmits on `side`."""

    plan: Plan
    side: Side
    #: the config of the station's wiring
    wiring: Mapping[str, Any]
    #: for traces and recordings
    folder: Path
    #: closes the radio's resources
    stack: ExitStack
    #: of the link in use
    flow_control: bool
    #: takes the fates of the station's frames, where the medium knows them
    fates: FrameFates
    #: `Link.frame_cost` of the link in use
    frame_cost: Callable[[float], float]

    def make_hop(self, *, earlier_ns: int = 0) -> Hop[bytes]:
        """Return the station's hop, whose propagation is shorter by `earlier_ns`."""
        hop = self.plan.stations[self.side].hop
        return hop.make(hop.buffer_bytes[self.flow_control], propagation_ns=max(0, hop.propagation_ns - earlier_ns))

    def open_trace(self, side: Side) -> FrameTrace | None:
        """Return the channel trace of a direction, where the plan wants traces."""
        if not self.plan.trace:
            return None
        path, producer = self.folder / f"trace-{side}.parquet", f"fadelab {self.plan.tier.name}"
        aside = None
        if self.plan.clock == "wall":
            # the disk takes its time while frames are due; in virtual time nothing takes any
            aside = self.stack.enter_context(ThreadPoolExecutor(1, "trace"))
            # begins the thread here, with the station's niceness: one begun by a real-time thread has none
            aside.submit(int).result()
        return self.stack.enter_context(FrameTrace(path, link=side, producer=producer, aside=aside))


@dataclass(frozen=True, kw_only=True)
class Medium:
    """One medium."""

    name: str
    #: opens it; yields the stations' wirings by the side that each transmits on
    open: Callable[[Plan], AbstractContextManager[Mapping[Side, Wiring]]]
    #: makes a station's radio, in the station's process. Raises FadelabError, FrontEndError or PhyError in one line.
    make_radio: Callable[[RadioContext], HopRadio]
    #: raises FadelabError or PhyError where it cannot carry the plan's link
    check: Callable[[Plan], None] = lambda plan: None


MEDIA: Final = Registry("testbed.live.media", "MEDIUM", Medium)


def medium_of(plan: Plan) -> Medium:
    """Return the medium of a plan's tier, which must not be simulated."""
    assert plan.tier.medium is not None
    return MEDIA[plan.tier.medium]
