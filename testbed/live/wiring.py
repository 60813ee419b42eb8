"""The medium between the two stations of a run, by tier: sockets, a virtual air, or the real air.

A medium is open for the length of a run. It yields a `Wiring` for each station. A new tier is a function here and a
line in `running.py`.
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
from testbed.tiers import TIERS, tier_with

if TYPE_CHECKING:
    from flowgraphs.air import Air

#: octets that one direction of a SEQPACKET socket holds unread
_SOCKET_BYTES = 8 << 20
#: serial number of the virtual USRP that transmits on a side
SERIALS: Mapping[Side, str] = {"up": "ST", "down": "BAS"}


@dataclass(frozen=True, slots=True)
class Wiring:
    """The medium's part of a station's configuration, and the descriptors that its process inherits."""

    config: Mapping[str, Any]
    fds: tuple[int, ...] = field(default=())
    #: changes the air that the station transmits into; None where the air cannot be changed
    set_channel: Callable[[Direction], None] | None = None


_numbers = itertools.count()

#: opens the medium; yields the stations' wirings by the side that each transmits on
Medium = Callable[[Scenario], AbstractContextManager[Mapping[Side, Wiring]]]


@contextmanager
def sockets(scenario: Scenario) -> Iterator[Mapping[Side, Wiring]]:
    """Tier `emulated`: frames cross a socket pair; the stations may inherit an end each."""
    st, bas = ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with st, bas:
        for end in ends:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BYTES)
        yield {side: Wiring({"peer_fd": end.fileno()}, (end.fileno(),)) for side, end in zip(SIDES, ends, strict=True)}


class AirChannel:
    """Sets the virtual air between ST and BAS as a scenario's channel says."""

    def __init__(self, air: "Air", radio: RadioOptions) -> None:
        from flowgraphs.levels import MIDDLE_GAIN_DB
        from flowgraphs.phys import make_phy

        self._air = air
        self._rate_sps = radio.rate_sps
        self._tx_gain_db = MIDDLE_GAIN_DB if radio.tx_gain_db is None else radio.tx_gain_db
        self._rms = make_phy(radio.phy, rate_sps=radio.rate_sps, **radio.phy_options("up")).rms

    def apply(self, side: Side, direction: Direction) -> None:
        """Set the path of frames sent on `side`."""
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
    """Tier `vusrp`: two virtual USRPs on a new air, set as the scenario's channel says."""
    # imports GNU Radio, which other tiers do without
    from flowgraphs.air import Air

    name = f"run-{os.getpid()}-{next(_numbers)}"
    with Air.create(name, seed=scenario.seed) as air:
        channel = AirChannel(air, scenario.radio)
        for side in SIDES:
            channel.apply(side, scenario.channel.direction(side))
        yield {
            side: Wiring(
                {"device": f"type=vusrp,air={name},serial={SERIALS[side]}"},
                set_channel=functools.partial(channel.apply, side),
            )
            for side in SIDES
        }


@contextmanager
def real_air(scenario: Scenario) -> Iterator[Mapping[Side, Wiring]]:
    """Tier `usrp`: two USRPs, named by the scenario or by --device."""
    yield {side: Wiring({"device": device}) for side, device in zip(SIDES, scenario.radio.devices or (), strict=True)}


def check_radios(scenario: Scenario) -> None:
    """Raise FadelabError or PhyError unless the scenario names its tier's radios and the PHY is fast enough."""
    radio, tier = scenario.radio, TIERS[scenario.tier]
    if tier.air == "real" and radio.devices is None:
        raise FadelabError(f"tier {tier.name} needs two radios: --device ARGS for ST and --device ARGS for BAS")
    if tier.air == "virtual" and radio.devices is not None:
        real = tier_with("real")
        raise FadelabError(f"radio.devices name real USRPs: run them with --tier {real}, or leave them out")
    if tier.radio:
        # import GNU Radio, which other tiers do without
        from flowgraphs.phys import make_phy
        from testbed.live.usrp_radio import check_capacity

        check_capacity(scenario, make_phy(radio.phy, rate_sps=radio.rate_sps, **radio.phy_options("up")))
