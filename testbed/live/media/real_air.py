"""Medium `real-air`: two USRPs, named by the scenario or by --device."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from common.sides import SIDES, Side
from testbed.errors import FadelabError
from testbed.live.media import Medium, Wiring
from testbed.live.media.on_air import check_bands, check_phy, make_radio
from testbed.scenario.run_plan import Plan


@contextmanager
def _open(plan: Plan) -> Iterator[Mapping[Side, Wiring]]:
    yield {side: Wiring({"device": device}) for side, device in zip(SIDES, plan.radio.devices or (), strict=True)}


def _check(plan: Plan) -> None:
    if plan.radio.devices is None:
        raise FadelabError(f"tier {plan.tier.name} needs two radios: --device ARGS for ST and --device ARGS for BAS")
    check_bands(plan)
    check_phy(plan)


MEDIUM = Medium(name="real-air", open=_open, make_radio=make_radio, check=_check)
