"""`doctor --cable`: what was set on the air is measured, and faults of a link lead to advice."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from flowgraphs.air import Air
from flowgraphs.cable_signal import AMPLITUDE, Direction, Measured
from flowgraphs.levels import path_gain_db
from testbed.cli import app
from testbed.cli.doctor.look import Check
from testbed.cli.doctor.usrp.cable import draw, judge
from tests.harness.radios import air_name, needs_vusrp

CARRIER_HZ = 2.46e9
GOOD = Measured(
    level_dbfs=-17.0, peak_dbfs=-7.0, snr_db=33.0, cfo_hz=4000.0, image_dbc=-45.0, dc_dbc=-50.0, evm_db=-32.0
)
LINK = Direction(
    rx_gain_db=40.0,
    silence_dbfs=-50.0,
    leakage_db=0.2,
    steps=((20.0, replace(GOOD, level_dbfs=-27.0, snr_db=23.0, evm_db=-23.0)), (30.0, GOOD)),
)


def top(**changes: float) -> Direction:
    return replace(LINK, steps=(LINK.steps[0], (30.0, replace(GOOD, **changes))))


def faults(found: Direction | None) -> list[Check]:
    return [check for check in judge("up", found, CARRIER_HZ) if not check.ok]


def test_good_link_has_no_fault() -> None:
    assert faults(LINK) == []
    assert [check.detail for check in judge("up", LINK, CARRIER_HZ)][:4] == [
        "sent with 30 dB, received with 40 dB: -17.0 dBFS",
        "33.0 dB; 64-QAM needs 28",
        "-32.0 dB; -32.0 dB with 30 dB of transmit gain",
        "4000 Hz, 1.63 ppm",
    ]


@pytest.mark.parametrize(
    ("found", "name", "remedy"),
    [
        (top(peak_dbfs=0.2, level_dbfs=-5.5), "level", "take 12 dB more attenuation, or set radio.tx_gain_db=18"),
        (top(snr_db=19.8), "SNR", "take 8 dB less attenuation, or raise radio.tx_gain_db"),
        (top(evm_db=-15.0), "error vector", "set radio.tx_gain_db=20"),
        (top(cfo_hz=-14e3), "carrier offset", "radio.clock_source=external"),
        (top(image_dbc=-25.0), "image", "uhd_cal_tx_iq_balance on ST, uhd_cal_rx_iq_balance on BAS"),
        (top(dc_dbc=-20.0), "carrier leakage", "radio.lo_offset_hz"),
        (replace(LINK, leakage_db=9.0), "own transmitter", "carriers further apart"),
    ],
)
def test_fault_of_link_leads_to_advice(found: Direction, name: str, remedy: str) -> None:
    [check] = faults(found)
    assert (check.name, check.required) == (f"ST to BAS: {name}", False)
    assert remedy in check.remedy


@pytest.mark.parametrize("found", [None, replace(LINK, steps=())])
def test_link_without_a_burst_is_not_ready(found: Direction | None) -> None:
    [check] = faults(found)
    assert check.required
    assert check.remedy.startswith("join TX/RX of ST to RX2 of BAS")


def test_plot_shows_a_deaf_direction(tmp_path: Path) -> None:
    draw({"up": LINK, "down": None}, tmp_path / "cable.png")
    assert (tmp_path / "cable.png").stat().st_size > 10_000


@pytest.fixture
def air() -> Iterator[Air]:
    with Air.create(air_name(), seed=1) as air:
        yield air


def run(air: Air, out: Path, profile: str = "ideal") -> int:
    radios = [f"type=vusrp,air={air.name},serial={serial},profile={profile}" for serial in ("V1", "V2")]
    return app.main(["doctor", "--json", "--radio", radios[0], "--radio", radios[1], "--cable", "--out", str(out)])


@needs_vusrp
@pytest.mark.radio
@pytest.mark.realtime
def test_what_was_set_on_the_air_is_measured(air: Air, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    snrs_db = {"up": 33.0, "down": 24.0}
    for side, tx, rx in (("up", "V1", "V2"), ("down", "V2", "V1")):
        gain_db = path_gain_db(snrs_db[side], rate_sps=2.5e6, tx_gain_db=30.0, rms=AMPLITUDE)
        air.set_link(tx, rx, gain_db=gain_db, cfo_hz=4321.0 if side == "up" else -1234.0)
    assert run(air, tmp_path) == 0
    names = {check["name"]: check["ok"] for check in json.loads(capsys.readouterr().out)["checks"]}
    assert (names["ST to BAS: SNR"], names["BAS to ST: SNR"]) == (True, False)
    [folder] = tmp_path.iterdir()
    assert (folder / "cable.png").exists()
    found = json.loads((folder / "cable.json").read_text())
    for side, cfo_hz in (("up", 4321.0), ("down", -1234.0)):
        steps = dict(found[side]["steps"])
        assert list(steps) == [5.0, 10.0, 15.0, 20.0, 25.0, 30.0]
        for gain_db, burst in steps.items():
            expected_db = snrs_db[side] - (30.0 - gain_db)
            if expected_db > 10:
                assert burst["snr_db"] == pytest.approx(expected_db, abs=0.5)
                assert burst["evm_db"] == pytest.approx(-expected_db, abs=0.5)
                assert burst["cfo_hz"] == pytest.approx(cfo_hz, abs=20)
        # the target of -20 to -15 dBFS, met by the receive gain
        assert -20.5 < steps[30.0]["level_dbfs"] < -14.5
        assert max(steps[30.0]["image_dbc"], steps[30.0]["dc_dbc"]) < -45
        assert abs(found[side]["leakage_db"]) < 1


@needs_vusrp
@pytest.mark.radio
@pytest.mark.realtime
def test_link_that_is_cut_has_no_burst(air: Air, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    air.set_link("*", "*", gain_db=-200.0)
    assert run(air, tmp_path) == 2
    missing = [check for check in json.loads(capsys.readouterr().out)["checks"] if not check["ok"]]
    assert {check["name"] for check in missing if check["required"]} == {"ST to BAS: burst", "BAS to ST: burst"}


@pytest.mark.parametrize("radios", [[], ["--radio", "serial=31A1"]])
def test_cable_check_needs_two_radios(radios: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["doctor", "--cable", *radios]) == 2
    assert "--cable measures between two radios" in capsys.readouterr().err
