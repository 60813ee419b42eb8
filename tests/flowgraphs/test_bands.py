"""The bands in which a real transmitter may use an antenna."""

import re
from dataclasses import replace
from typing import Any

import pytest

from flowgraphs.bands import BANDS_HZ
from flowgraphs.frontend import FrontEndError, FrontEndOptions, RadioSettings, Transmitter
from testbed.paths import root
from testbed.scenario.radio import RadioOptions
from tests.harness.invented_usrp import Board

REAL = RadioSettings("serial=31A1", 2.5e6, tx_hz=2.41e9, rx_hz=2.46e9)


def refusal(settings: RadioSettings, **options: Any) -> str:
    with pytest.raises(FrontEndError) as caught:
        Transmitter(replace(settings, options=FrontEndOptions(**options)))
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix("USRP 'serial=31A1': ")


def test_transmitter_asks_for_cables_or_a_region(monkeypatch: pytest.MonkeyPatch) -> None:
    board = Board().install(monkeypatch)
    assert refusal(REAL) == (
        "would radiate on 2408.75 to 2411.25 MHz: set radio.cabled=true (replay: --cabled) where cables and "
        "attenuators join the radios, else radio.region (--region) to europe or usa"
    )
    assert board.opened == []
    for options in (FrontEndOptions(cabled=True), FrontEndOptions(region="usa")):
        Transmitter(replace(REAL, options=options))


@pytest.mark.parametrize("args", ["type=vusrp,serial=V1", "air=lab, serial=V1", "type=vusrp,profile=b210"])
def test_virtual_transmitter_radiates_nothing(monkeypatch: pytest.MonkeyPatch, args: str) -> None:
    Board().install(monkeypatch)
    Transmitter(replace(REAL, args=args, tx_hz=1.57542e9))


@pytest.mark.parametrize("hz", [2400e6, 2401.2e6, 2483e6, 1575.42e6, 915e6])
def test_carrier_outside_the_regions_bands_needs_cables(monkeypatch: pytest.MonkeyPatch, hz: float) -> None:
    Board().install(monkeypatch)
    settings = replace(REAL, tx_hz=hz)
    assert "must not radiate on" in refusal(settings, region="europe")
    Transmitter(replace(settings, options=FrontEndOptions(region="europe", cabled=True)))


@pytest.mark.parametrize("region", BANDS_HZ)
def test_default_carriers_lie_in_a_band_of_every_region(region: str) -> None:
    fields = RadioOptions.model_fields
    for key in ("up_hz", "down_hz"):
        settings = replace(REAL, tx_hz=fields[key].default, rate_sps=fields["rate_sps"].default)
        replace(settings, options=FrontEndOptions(region=region)).check_band()


def test_hardware_guide_has_the_same_bands() -> None:
    text = (root() / "docs" / "hardware.md").read_text()
    rows = re.findall(r"^\| ([\d.]+) to ([\d.]+) MHz \|([^|]*)\|([^|]*)\|$", text, re.MULTILINE)
    told: dict[str, list[tuple[float, float]]] = {"europe": [], "usa": []}
    for low, high, *cells in rows:
        for region, cell in zip(told, cells, strict=True):
            if cell.strip() not in ("", "no general use of this kind"):
                told[region].append((float(low) * 1e6, float(high) * 1e6))
    assert told == {region: list(bands) for region, bands in BANDS_HZ.items()}
