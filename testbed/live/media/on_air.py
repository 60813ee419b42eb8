"""The radios of media with an air, virtual or real: a USRP and a PHY in GNU Radio, which these functions import."""

from common.sides import SIDES
from testbed.live.hop_radio import HopRadio
from testbed.live.media import RadioContext
from testbed.scenario.run_plan import Plan


def check_phy(plan: Plan) -> None:
    """Raise FadelabError or PhyError unless the PHY is fast enough."""
    from testbed.live.usrp_radio import check_capacity, phy_of, settings_of

    radio = plan.radio
    phy = phy_of(plan, "up")
    devices = radio.devices or ("type=vusrp",)
    check_capacity(plan, phy, max(sum(settings_of(plan, "up", device).guard()) for device in devices))


def check_bands(plan: Plan) -> None:
    """Raise FrontEndError where a named radio would radiate outside the bands of the plan's region."""
    from testbed.live.usrp_radio import settings_of

    for side, device in zip(SIDES, plan.radio.devices or (), strict=False):
        settings_of(plan, side, device).check_band()


def make_radio(context: RadioContext) -> HopRadio:
    """Return the running radio of a station."""
    if context.plan.radio.access is not None:
        from testbed.live.one_carrier_radio import make_one_carrier_radio

        return make_one_carrier_radio(context, context.plan.radio.access)
    from testbed.live.usrp_radio import make_on_air_radio

    return make_on_air_radio(context)
