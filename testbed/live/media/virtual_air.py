"""Medium `virtual-air`: two virtual USRPs on an air of their own, set as the plan's channel says."""

import functools
import itertools
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from common.sides import SIDES, Side, other
from testbed.errors import FadelabError
from testbed.live import grid
from testbed.live.media import Medium, Wiring
from testbed.live.media.on_air import check_phy, make_radio
from testbed.scenario.run_plan import AirPath, Plan, RadioPlan
from testbed.tiers import tier_with

if TYPE_CHECKING:
    from flowgraphs.air import Air

#: serial number of the virtual USRP that transmits on a side
SERIALS: Mapping[Side, str] = {"up": "ST", "down": "BAS"}

_numbers = itertools.count()


class AirChannel:
    """Sets the virtual air between ST and BAS as a plan's channel says."""

    def __init__(self, air: "Air", radio: RadioPlan) -> None:
        from flowgraphs.levels import MIDDLE_GAIN_DB
        from flowgraphs.phys import make_phy

        self._air = air
        self._rate_sps = radio.rate_sps
        self._tx_gain_db = MIDDLE_GAIN_DB if radio.tx_gain_db is None else radio.tx_gain_db
        self._rms = make_phy(radio.phy, rate_sps=radio.rate_sps, **radio.phy_options["up"]).rms

    def apply(self, side: Side, path: AirPath) -> None:
        """Set the path of frames sent on `side`."""
        from flowgraphs.levels import NOISE_DBM_PER_HZ, path_gain_db

        gain_db = path_gain_db(path.snr_db, rate_sps=self._rate_sps, tx_gain_db=self._tx_gain_db, rms=self._rms)
        self._air.set_link(
            SERIALS[side],
            SERIALS[other(side)],
            gain_db=gain_db,
            cfo_hz=path.cfo_hz,
            taps=path.taps,
            series=path.series,
        )
        # that of the levels, also for a family with a noise figure of its own: its highest gain then has the plan's SNR
        self._air.set_receiver(SERIALS[other(side)], noise_dbm_hz=NOISE_DBM_PER_HZ)


@contextmanager
def _open(plan: Plan) -> Iterator[Mapping[Side, Wiring]]:
    from flowgraphs.air import Air

    if plan.clock == "virtual":
        # an air's clock begins with it
        grid.pause()
    name = f"run-{os.getpid()}-{next(_numbers)}"
    with Air.create(name, seed=plan.seed) as air:
        channel = AirChannel(air, plan.radio)
        for side, station in plan.stations.items():
            channel.apply(side, station.air)
        yield {
            side: Wiring(
                {"device": f"type=vusrp,air={name},serial={SERIALS[side]}", "shared_clock": True},
                set_path=functools.partial(channel.apply, side),
            )
            for side in SIDES
        }


def _check(plan: Plan) -> None:
    if plan.radio.devices is not None:
        real = tier_with("real")
        raise FadelabError(f"radio.devices name real USRPs: run them with --tier {real}, or leave them out")
    check_phy(plan)


MEDIUM = Medium(name="virtual-air", open=_open, make_radio=make_radio, check=_check)
