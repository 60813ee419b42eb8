"""Programs that know nothing of virtual USRPs run on them: UHD's tools and examples, and one of GNU Radio's."""

import itertools
import re
import subprocess
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from flowgraphs.air import Air, Chain, Impairments
from tests.harness.uhd_programs import EXAMPLES, PROGRAMS, RATES, Program
from tests.vusrp.conftest import Programs

pytestmark = [pytest.mark.realtime, pytest.mark.light]


def test_devices_are_found_where_they_are_asked_for(programs: Programs) -> None:
    def serials(args: str, code: int = 0) -> list[str]:
        return re.findall(r"serial: (\S+)", programs.run("uhd_find_devices", "--args", args, code=code))

    assert serials(programs.args) == ["V1", "V2"]
    assert serials(f"{programs.args},serial=any-1") == ["any-1"]
    assert serials(programs.args.removeprefix("type=vusrp,")) == ["V1", "V2"]
    for other in ("type=b200", "addr=127.0.0.1", "serial=30AD123", "resource=RIO0", "b200"):
        assert serials(other, code=1) == []


def test_probe_shows_two_channels_each_way(programs: Programs) -> None:
    shown = programs.run("uhd_usrp_probe", "--args", f"{programs.args},serial=V9")
    assert "Device: vusrp" in shown
    assert "serial: V9" in shown
    assert len(re.findall("RX Frontend: ", shown)) == len(re.findall("TX Frontend: ", shown)) == 2
    assert "/mboards/0/time/now" in programs.run("uhd_usrp_probe", "--args", programs.args, "--tree")


@pytest.mark.parametrize(
    "more",
    [
        ["--rx_rate", "1e6", "--tx_rate", "1e6"],
        ["--rx_rate", "1e6", "--tx_rate", "1e6", "--channels", "0,1", "--rx_cpu", "sc16", "--tx_cpu", "sc8"],
        ["--rx_rate", "5e5", "--tx_rate", "5e5", "--channels", "0,1", "--multi_streamer"],
    ],
)
def test_benchmark_rate(programs: Programs, more: list[str]) -> None:
    said = programs.run("benchmark_rate", "--args", programs.args, "--duration", "1", *more)
    counts = dict(re.findall(r"Num (.*): +(\d+)", said))
    assert int(counts["received samples"]) >= 900_000
    assert int(counts["transmitted samples"]) >= 900_000
    assert counts["sequence errors (Rx)"] == counts["sequence errors (Tx)"] == "0"


def test_a_loopback_hears_its_own_tone(programs: Programs, tmp_path: Path) -> None:
    both = {f"--{end}-{what}": value for end in ("tx", "rx") for what, value in (("rate", "1e6"), ("freq", "1e9"))}
    both |= {"--tx-args": programs.args, "--rx-args": programs.args, "--tx-gain": "60", "--rx-gain": "30"}
    # an eighth of the rate: the program's wave table has it exactly. It transmits from 0.5 s on.
    tone = {"--wave-type": "SINE", "--wave-freq": "125e3", "--ampl": "0.5", "--settling": "0.7"}
    file = {"--type": "float", "--file": "iq", "--nsamps": "200000"}
    programs.run("txrx_loopback_to_file", *itertools.chain(*(both | tone | file).items()))
    spectrum = np.abs(np.fft.fft(np.fromfile(tmp_path / "iq", np.complex64))) / 200_000
    assert int(np.argmax(spectrum)) == 25_000
    assert spectrum[25_000] == pytest.approx(0.5, rel=0.01)  # +20 dBm less 60 dB is full scale


def _profiles(number: int, program: Program) -> list[str]:
    """A family on which the program passes and one that refuses it; `benchmarks.uhd_programs` takes all."""
    families = list(RATES)[number % len(RATES) :] + list(RATES)[: number % len(RATES)]
    passing = [profile for profile in families if program.reason(profile) is None]
    refusing = [profile for profile in families if program.reason(profile)]
    return passing[:1] + refusing[:1]


@pytest.mark.parametrize(
    ("program", "profile"),
    [
        pytest.param(program, profile, id=f"{Path(program.name).name}-{profile}")
        for number, program in enumerate(PROGRAMS)
        for profile in _profiles(number, program)
    ],
)
def test_program_on_family(programs: Programs, program: Program, profile: str) -> None:
    programs.check(program, profile)


def test_calibration_finds_the_image_of_a_transmitter_and_removes_it(programs: Programs, air_name: str) -> None:
    """0.4 dB and 2 degrees of imbalance are an image 30.6 dB below the tone."""
    with closing(Air.create(air_name, clock="lockstep", wait_streams=1)) as air:
        air.set_impairments("*", Impairments(tx=Chain(iq_gain_db=0.4, iq_phase_deg=2.0)))
        [calibration] = [one for one in PROGRAMS if one.name == "uhd_cal_tx_iq_balance"]
        said = programs.run(*calibration.words(f"{programs.args},profile=x310-ubx", "x310-ubx"))
    found = re.search(r"best suppression ([\d.]+) dB, corrected ([\d.]+) dB", said)
    assert found, said
    best_db, corrected_db = map(float, found.groups())
    assert best_db > 55
    assert best_db - corrected_db == pytest.approx(30.6, abs=0.2)


def test_the_old_name_of_the_airs_clock_is_told_once_with_the_new_one(programs: Programs) -> None:
    said = programs.run("uhd_usrp_probe", "--args", f"{programs.args},clock=lockstep")
    [line] = [line for line in said.splitlines() if "VUSRP" in line]
    assert "the argument clock=lockstep is now called air_clock=lockstep: the old name ends with the next" in line
    for args in ("air_clock=lockstep", "clock=external"):
        assert "VUSRP" not in programs.run("uhd_usrp_probe", "--args", f"{programs.args},{args}")


def test_samples_go_from_file_to_file(programs: Programs, tmp_path: Path, air_name: str) -> None:
    """Two unmodified programs in lockstep: one plays a file, the other records it."""
    rng = np.random.default_rng(3)
    sent = (0.3 * (rng.standard_normal(50_000) + 1j * rng.standard_normal(50_000))).astype(np.complex64)
    sent.tofile(tmp_path / "sent")
    radio = ("--rate", "1e6", "--freq", "1e9", "--type", "float")
    args = f"{programs.args},air_clock=lockstep,wait_streams=1,serial="
    receiver = subprocess.Popen(
        [EXAMPLES / "rx_samples_to_file", *f"--args {args}V2 --file got --nsamps 60000 --gain 50".split(), *radio],
        cwd=tmp_path,
        env=programs.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    programs.run("tx_samples_from_file", "--args", f"{args}V1", "--file", "sent", "--gain", "40", *radio)
    assert receiver.wait(60) == 0
    got = np.fromfile(tmp_path / "got", np.complex64)
    # from 1 ms on; noise at -48 dBFS
    expected = np.clip(sent.real, -1, 1) + 1j * np.clip(sent.imag, -1, 1)
    error = got[1_000:51_000] - expected
    assert np.mean(np.abs(error) ** 2) == pytest.approx(10**-4.8, rel=0.05)
