"""The day two USRPs arrive: tier `usrp` on every family, no part of it told that they are virtual."""

import json
from pathlib import Path

import pytest

from flowgraphs.air import Air
from tests.harness.busy import late
from tests.harness.live_runs import ROOT, fadelab
from tests.harness.radios import air_name, needs_vusrp
from tests.hosts.harness import needs_network

pytestmark = [*needs_network, pytest.mark.radio]

FAMILIES = sorted(path.stem for path in (ROOT / "flowgraphs/vusrp/profiles").glob("*.cpp") if path.stem != "registry")
#: a 30 dB attenuator in each cable: both gains in the middle of their ranges must do
CABLE_DB = -30


@needs_vusrp
@pytest.mark.parametrize("family", FAMILIES)
def test_a_transfer_between_two_devices_of_a_family(family: str, tmp_path: Path) -> None:
    """With the family's typical flaws, which a device has unless it is opened without."""
    name = air_name()
    with Air.create(name) as air:
        for ends in (("V1", "V2"), ("V2", "V1")):
            air.set_link(*ends, gain_db=CABLE_DB)
        devices = [f"type=vusrp,profile={family},air={name},serial={serial}" for serial in ("V1", "V2")]
        status, printed, told = fadelab(
            *("run", "scenarios/fading-link.yaml", "--tier", "usrp", "--json", "--out", tmp_path),
            *("--device", devices[0], "--device", devices[1], "--set", "workloads.0.duration_s=2"),
        )
    if "did not keep up" in told:
        late(told.strip().split("\n")[-1])
    assert status == 0, told
    summary = json.loads(printed)
    assert (summary["tier"], summary["intact"], summary["finished"]) == ("usrp", True, True)
    # PHY and link carry 1.82 Mbit/s of TCP's octets; slow start has a part of two seconds
    assert summary["goodput_bps"] > 1.2e6
    # of a burst that comes late a device sends nothing: that frame is the machine's, not the air's
    link = summary["link"]["up"]
    assert link["corruption_losses"] - summary["late_events"] < 0.01 * link["frames"]
