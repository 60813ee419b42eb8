"""SoapySDR, through its module for UHD: what its tool shows of each family, and a program in Python that streams."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.uhd_programs import RATES
from tests.vusrp.conftest import Programs

#: a burst of twice as many fits the smallest transmit buffer, an N310's
TONE_BIN, SAMPLES = 500, 4_000

#: sends a burst with a tone to itself at a time, and prints the spectrum that it receives at that time
LOOPBACK = f"""
import json, sys
import numpy as np
import SoapySDR
from SoapySDR import SOAPY_SDR_CF32, SOAPY_SDR_END_BURST, SOAPY_SDR_HAS_TIME, SOAPY_SDR_RX, SOAPY_SDR_TX
device = SoapySDR.Device(sys.argv[1])
for direction, gain in ((SOAPY_SDR_TX, device.getGainRange(SOAPY_SDR_TX, 0).maximum()), (SOAPY_SDR_RX, 35.0)):
    device.setSampleRate(direction, 0, float(sys.argv[2]))
    device.setFrequency(direction, 0, 1e9)
    device.setGain(direction, 0, gain)
tone = (0.25 * np.exp(2j * np.pi * {TONE_BIN} / {SAMPLES} * np.arange(2 * {SAMPLES}))).astype(np.complex64)
sender, receiver = (device.setupStream(which, SOAPY_SDR_CF32, [0]) for which in (SOAPY_SDR_TX, SOAPY_SDR_RX))
at_ns = device.getHardwareTime() + 50_000_000
device.activateStream(sender)
sent = device.writeStream(sender, [tone], len(tone), SOAPY_SDR_HAS_TIME | SOAPY_SDR_END_BURST, at_ns)
assert sent.ret == len(tone), SoapySDR.errToStr(sent.ret)
device.activateStream(receiver, SOAPY_SDR_HAS_TIME | SOAPY_SDR_END_BURST, at_ns + 1_000_000, {SAMPLES})
heard = np.zeros({SAMPLES}, np.complex64)
filled = 0
while filled < {SAMPLES}:
    got = device.readStream(receiver, [heard[filled:]], {SAMPLES} - filled, timeoutUs=20_000_000)
    assert got.ret > 0, SoapySDR.errToStr(got.ret)
    filled += got.ret
power = np.abs(np.fft.fft(heard) / {SAMPLES}) ** 2
tone = int(np.argmax(power))
print(json.dumps({{"bin": tone, "others_db": 10 * np.log10(power[tone] / (power.sum() - power[tone]))}}))
for stream in (sender, receiver):
    device.deactivateStream(stream)
    device.closeStream(stream)
"""


@pytest.mark.parametrize("profile", RATES)
def test_probe_shows_the_family(programs: Programs, profile: str) -> None:
    shown = programs.run("SoapySDRUtil", f"--probe=driver=uhd,{programs.args},profile={profile}")
    channels = {"b210": 2, "x310-ubx": 2, "n310": 4, "ideal": 2}.get(profile, 1)
    assert f"Channels: {channels} Rx, {channels} Tx" in shown
    assert shown.count("-- RX Channel ") == shown.count("-- TX Channel ") == channels
    assert ("GPIOs: FP0" in shown) == (profile not in ("ideal", "n210-sbx"))


@pytest.mark.parametrize("profile", RATES)
def test_a_program_hears_the_tone_that_it_sends(programs: Programs, tmp_path: Path, profile: str) -> None:
    pytest.importorskip("SoapySDR", reason="python3-soapysdr is not installed")
    script = tmp_path / "loopback.py"
    script.write_text(LOOPBACK)
    command = [sys.executable, str(script), f"driver=uhd,{programs.args},profile={profile},air_clock=lockstep"]
    done = subprocess.run(
        [*command, RATES[profile]], env=programs.environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    heard = json.loads(done.stdout.splitlines()[-1])
    # the oscillators' steps leave up to 4 Hz between them: the tone stays in its bin
    assert heard["bin"] == TONE_BIN
    assert heard["others_db"] > 15
