"""Programs that know nothing of virtual USRPs run on them: UHD's tools and examples, and one of GNU Radio's."""

import itertools
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.vusrp.conftest import EXAMPLES, Programs

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


#: commands, and what they say besides
PROGRAMS = {
    "tx_waveforms --args ARGS --rate 1e6 --freq 1e9 --nsamps 300000": "",
    "tx_bursts --args ARGS --rate 1e6 --freq 1e9 --nsamps 5000": "",
    "tx_timed_samples --args ARGS": "",
    "rx_timed_samples --args ARGS": "",
    "rx_multi_samples --args ARGS --channels 0,1": "",
    "latency_test --args ARGS --nruns 30": "",
    "test_pps_input --args ARGS": "",
    "usrp_list_sensors --args ARGS": "",
    "rx_samples_c -a ARGS -o iq -n 100000": "",
    "python/rx_to_file.py -a ARGS -o iq.npy -f 1e9 -r 1e6 -d 0.2 -c 0": "",
    "python/benchmark_rate.py --args ARGS --rx_rate 1e6 --tx_rate 1e6 --duration 1": "",
    "uhd_rx_cfile -a ARGS -f 1e9 --samp-rate 1e6 -N 200000 iq": "",
    "test_messages --args ARGS --ntests 12 --test-chain": r"(\d+ successes, +0 failures.*){5}",
    "test_timed_commands --args ARGS": "time 1: 0.000000 us.* actual and expected time delta: 0.000000 us",
}


@pytest.mark.parametrize(("command", "says"), PROGRAMS.items(), ids=[Path(line.split()[0]).name for line in PROGRAMS])
def test_a_program_ends_well(programs: Programs, command: str, says: str) -> None:
    said = programs.run(*[programs.args if word == "ARGS" else word for word in command.split()])
    assert "Traceback" not in said
    assert re.search(says, said, re.DOTALL)


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
