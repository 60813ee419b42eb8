"""`doctor --radio A --radio B --cable`: what the radios measured of each other, with advice and a plot.

Read first: `flowgraphs/cable_check.py`, which measures; `docs/hardware.md`, "Cabling".
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from common.sides import SIDES, STATIONS, Side, other
from flowgraphs.cable_signal import TARGET_DBFS, Direction
from testbed.cli.doctor.look import RADIO_JOB, Check
from testbed.cli.doctor.usrp.case import made
from testbed.cli.doctor.usrp.probe import measure
from testbed.cli.doctor.usrp.this_machine import scenario_of

GOOD_LINK = "a good link"
#: 64-QAM, as in hil_tests/README.md
_SNR_DB = 28.0
#: peaks of a receiver that does not clip
_PEAK_DBFS = -1.0
#: of image and carrier: they hurt 64-QAM from here on
_LEAST_DBC = -30.0
#: two oscillators of 2.5 ppm
_OFFSET_PPM = 5.0
#: what the highest gain may cost
_BENT_DB = 3.0
_LEAKAGE_DB = 3.0


def cable_checks(radios: Sequence[str], scenario: Path | None, settings: Sequence[str], out: Path) -> list[Check]:
    """Measure, keep figures and plot in a new folder, and return the checks. Raises FadelabError."""
    loaded = scenario_of(scenario, settings)
    found = measure(radios, loaded.plain())
    folder = out / time.strftime("cable-%Y%m%d-%H%M%S")
    folder.mkdir(parents=True)
    plain = {side: None if one is None else asdict(one) for side, one in found.items()}
    (folder / "cable.json").write_text(json.dumps({"radios": list(radios), **plain}, indent=2) + "\n")
    checks = [check for side in SIDES for check in judge(side, found[side], loaded.radio.carrier_hz(side))]
    if any(found.values()):
        draw(found, folder / "cable.png")
        checks.append(made("cable check", False, f"{folder}/cable.png, cable.json", "", (GOOD_LINK,)))
    return checks


def judge(side: Side, found: Direction | None, carrier_hz: float) -> Iterator[Check]:
    """Yield the checks of one direction."""
    sender, hearer = STATIONS[side].upper(), STATIONS[other(side)].upper()

    def check(what: str, fault: bool, seen: str, remedy: str) -> Check:
        return made(f"{sender} to {hearer}: {what}", fault, seen, remedy, (GOOD_LINK,))

    if found is None or not found.steps:
        yield made(
            f"{sender} to {hearer}: burst",
            True,
            "none was heard",
            f"join TX/RX of {sender} to RX2 of {hearer} by cable and attenuator; less attenuation",
            (RADIO_JOB,),
        )
        return
    gain_db, top = found.steps[-1]
    clips = max(one.peak_dbfs for _, one in found.steps) > _PEAK_DBFS
    excess_db = top.level_dbfs - sum(TARGET_DBFS) / 2
    yield check(
        "level",
        clips,
        f"sent with {gain_db:g} dB, received with {found.rx_gain_db:g} dB: {top.level_dbfs:.1f} dBFS",
        f"take {max(excess_db, 3):.0f} dB more attenuation, or set radio.tx_gain_db={max(gain_db - excess_db, 0):.0f}",
    )
    lacks_db = _SNR_DB - top.snr_db
    yield check(
        "SNR",
        lacks_db > 0,
        f"{top.snr_db:.1f} dB; 64-QAM needs {_SNR_DB:g}",
        f"take {max(lacks_db, 1):.0f} dB less attenuation, or raise radio.tx_gain_db",
    )
    best_db, best = min(found.steps, key=lambda step: step[1].evm_db)
    yield check(
        "error vector",
        top.evm_db - best.evm_db > _BENT_DB,
        f"{top.evm_db:.1f} dB; {best.evm_db:.1f} dB with {best_db:g} dB of transmit gain",
        f"an amplifier or a converter is too loud: set radio.tx_gain_db={best_db:g}",
    )
    ppm = top.cfo_hz / carrier_hz * 1e6
    yield check(
        "carrier offset",
        abs(ppm) > _OFFSET_PPM,
        f"{top.cfo_hz:.0f} Hz, {ppm:.2f} ppm",
        "let the radios warm up, or feed 10 MHz to both: radio.clock_source=external",
    )
    yield check(
        "image",
        top.image_dbc > _LEAST_DBC,
        f"{top.image_dbc:.0f} dBc",
        f"uhd_cal_tx_iq_balance on {sender}, uhd_cal_rx_iq_balance on {hearer}",
    )
    yield check(
        "carrier leakage",
        top.dc_dbc > _LEAST_DBC,
        f"{top.dc_dbc:.0f} dBc",
        f"set radio.lo_offset_hz to the sample rate; uhd_cal_tx_dc_offset on {sender}",
    )
    yield check(
        "own transmitter",
        found.leakage_db > _LEAKAGE_DB,
        f"raises the noise of {sender}'s receiver by {max(found.leakage_db, 0):.1f} dB",
        "carriers further apart, a filter, lower radio.tx_gain_db; by antenna: more distance",
    )


def draw(found: Mapping[Side, Direction | None], target: Path) -> None:
    """Draw what was measured over transmit gain, a column for each direction."""
    from testbed.results.show import pyplot

    plt = pyplot()
    figure, axes = plt.subplots(2, len(SIDES), figsize=(11, 6.5), layout="constrained", sharex="col", sharey="row")
    for (above, below), side in zip(axes.T, SIDES, strict=True):
        one = found[side]
        above.set_title(f"{STATIONS[side].upper()} to {STATIONS[other(side)].upper()}", loc="left", fontsize=10)
        for axis in (above, below):
            axis.grid(alpha=0.3)
            axis.spines[["top", "right"]].set_visible(False)
        below.set_xlabel("transmit gain (dB)")
        if one is None:
            above.text(0.5, 0.5, "no burst was heard", ha="center", transform=above.transAxes)
            continue
        gains = [gain for gain, _ in one.steps]
        bursts = [burst for _, burst in one.steps]
        above.plot(gains, [burst.snr_db for burst in bursts], "o-", label="SNR")
        above.plot(gains, [-burst.evm_db for burst in bursts], "s--", label="−EVM")
        above.axhline(_SNR_DB, color="gray", linewidth=0.8, linestyle=":", label="64-QAM")
        below.plot(gains, [burst.level_dbfs for burst in bursts], "o-", label="level (dBFS)")
        below.plot(gains, [burst.peak_dbfs for burst in bursts], "^:", label="peak (dBFS)")
        below.plot(gains, [burst.image_dbc for burst in bursts], "x--", label="image (dBc)")
        below.plot(gains, [burst.dc_dbc for burst in bursts], "+--", label="carrier leakage (dBc)")
        below.axhline(one.silence_dbfs, color="gray", linewidth=0.8, linestyle=":", label="noise (dBFS)")
        above.legend(frameon=False, fontsize=9)
        below.legend(frameon=False, fontsize=8)
    axes[0][0].set_ylabel("dB")
    axes[1][0].set_ylabel("dBFS, dBc")
    figure.savefig(target, dpi=130)
    plt.close(figure)
