"""What joins the two stations of a run, tier by tier: sockets, a virtual air, or nothing but the air.

A medium is opened for the length of a run and says what each station's configuration and process need for it. A new
tier is a function here and a line in `running.py`.
"""

import functools
import itertools
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from common.sides import SIDES, Side, other
from testbed.errors import FadelabError
from testbed.scenario.schema import Direction, RadioOptions, Scenario

if TYPE_CHECKING:
    from flowgraphs.air import Air

#: one SEQPACKET direction holds this much of frames that have arrived and were not read yet
_SOCKET_BYTES = 8 << 20
#: serial numbers of the virtual USRPs: who transmits on a side
SERIALS: Mapping[Side, str] = {"up": "ST", "down": "BAS"}


@dataclass(frozen=True, slots=True)
class Wiring:
    """What one station gets: a part of its configuration, and the descriptors its process inherits."""

    config: Mapping[str, Any]
    fds: tuple[int, ...] = field(default=())
    #: lets what this station sends meet another air from now on, where the air is ours to shape
    reshape: Callable[[Direction], None] | None = None


_numbers = itertools.count()

#: opens what joins the stations; yields each one's wiring by the side it transmits on
Medium = Callable[[Scenario], AbstractContextManager[Mapping[Side, Wiring]]]


@contextmanager
def sockets(scenario: Scenario) -> Iterator[Mapping[Side, Wiring]]:
    """Tier `emulated`: frames cross a socket pair; the stations may inherit an end each."""
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        for end in ends:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BYTES)
        yield {side: Wiring({"peer_fd": end.fileno()}, (end.fileno(),)) for side, end in zip(SIDES, ends, strict=True)}
    finally:
        for end in ends:
            end.close()


class Shape:
    """What a scenario makes of an air between ST and BAS."""

    def __init__(self, air: "Air", radio: RadioOptions) -> None:
        from flowgraphs.levels import MIDDLE_GAIN_DB
        from flowgraphs.phys import make_phy

        self._air = air
        self._rate_sps = radio.rate_sps
        self._tx_gain_db = MIDDLE_GAIN_DB if radio.tx_gain_db is None else radio.tx_gain_db
        self._rms = make_phy(radio.phy, rate_sps=radio.rate_sps, **radio.phy_options("up")).rms

    def apply(self, side: Side, direction: Direction) -> None:
        """Let what is sent on `side` meet this from now on."""
        from flowgraphs.levels import path_gain_db

        gain_db = path_gain_db(direction.snr_db, rate_sps=self._rate_sps, tx_gain_db=self._tx_gain_db, rms=self._rms)
        fading = direction.fading
        taps, series = ((), None) if fading is None else (fading.taps(), fading.series)
        self._air.set_link(
            SERIALS[side],
            SERIALS[other(side)],
            gain_db=gain_db,
            cfo_hz=direction.cfo_hz,
            taps=taps,
            series=series,
        )


@contextmanager
def virtual_air(scenario: Scenario) -> Iterator[Mapping[Side, Wiring]]:
    """Tier `vusrp`: two virtual USRPs on an air of the run's own, set up as the channel says."""
    # GNU Radio behind it: not for a run without
    from flowgraphs.air import Air

    name = f"run-{os.getpid()}-{next(_numbers)}"
    with Air.create(name, seed=scenario.seed) as air:
        shape = Shape(air, scenario.radio)
        for side in SIDES:
            shape.apply(side, scenario.channel.direction(side))
        yield {
            side: Wiring(
                {"device": f"type=vusrp,air={name},serial={SERIALS[side]}"},
                reshape=functools.partial(shape.apply, side),
            )
            for side in SIDES
        }


@contextmanager
def real_air(scenario: Scenario) -> Iterator[Mapping[Side, Wiring]]:
    """Tier `usrp`: two USRPs, named by the scenario or by --device."""
    yield {side: Wiring({"device": device}) for side, device in zip(SIDES, scenario.radio.devices or (), strict=True)}


def check_radios(scenario: Scenario) -> None:
    """Raise FadelabError or PhyError unless the scenario names the radios its tier has, and the PHY can do it all."""
    radio = scenario.radio
    if scenario.tier == "usrp" and radio.devices is None:
        raise FadelabError("tier usrp needs two radios: --device ARGS for ST and --device ARGS for BAS")
    if scenario.tier == "vusrp" and radio.devices is not None:
        raise FadelabError("radio.devices name real USRPs: run them with --tier usrp, or leave them out")
    if scenario.tier in ("vusrp", "usrp"):
        # GNU Radio behind them: not for a run without
        from flowgraphs.phys import make_phy
        from testbed.live.usrp_radio import check_capacity

        check_capacity(scenario, make_phy(radio.phy, rate_sps=radio.rate_sps, **radio.phy_options("up")))
