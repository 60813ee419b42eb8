"""What every PHY keeps to; a new one is covered as soon as its file is there."""

import math
import subprocess
import sys
from dataclasses import fields
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from flowgraphs.phys import PHYS, make_phy
from testbed.scenario.radio import RadioOptions
from tests.conformance.options import PHY
from tests.harness.awgn import air

RATE_SPS = 2e6
SNR_DB = 25.0
#: of the frames that are sent, in bytes
SIZES = (1, 2, 60, 333, 1400)


@pytest.mark.parametrize("name", PHYS)
def test_its_options_have_names_of_their_own_among_the_radios_keys(name: str) -> None:
    assert not {field.name for field in fields(PHYS[name].options)} & RadioOptions.model_fields.keys()


@pytest.mark.parametrize("name", PHYS)
def test_the_radio_that_hears_a_side_is_on_its_carrier(name: str) -> None:
    radio = PHY.example(name, network=7, rms=0.125).radio
    options = radio.phy_options("down")
    assert (options["network"], options["rms"], options["carrier_hz"]) == (7, 0.125, radio.down_hz)


def test_options_are_cheap_to_import() -> None:
    program = "import sys; from flowgraphs.phys import PHYS; print(*PHYS); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    names, modules = (set(line.split()) for line in done.stdout.splitlines())
    assert names >= {"ofdm", "wifi"}
    assert not modules & {"gnuradio", "pmt", "numpy"}


# -- at work, with GNU Radio -----------------------------------------------------------------------------------


def made(name: str, **options: Any) -> Any:
    """The PHY, where what it needs is there."""
    pytest.importorskip("gnuradio")
    from flowgraphs.phy import PhyError

    try:
        return make_phy(name, rate_sps=RATE_SPS, **options)
    except PhyError as error:
        pytest.skip(str(error))


@pytest.fixture(params=PHYS)
def phy(request: pytest.FixtureRequest) -> Any:
    return made(request.param)


def frames(seed: int) -> list[bytes]:
    rng = np.random.default_rng(seed)
    return [rng.bytes(size) for size in SIZES]


@pytest.mark.parametrize("name", PHYS)
def test_what_it_has_not_is_refused_in_one_line(name: str) -> None:
    pytest.importorskip("gnuradio")
    from flowgraphs.phy import PhyError

    for options in ({"nonsense": 1}, {"rms": 0}, {"network": -1}, {"rate_sps": 0}, {"carrier_hz": -1}):
        with pytest.raises(PhyError, match=f"^PHY {name}.*{next(iter(options))}") as error:
            make_phy(name, **{"rate_sps": RATE_SPS, **options})
        assert "\n" not in str(error.value)


@pytest.mark.slow
def test_frames_cross_samples_and_the_report_is_true(phy: Any) -> None:
    from tests.harness.bursts import modulated

    sent = frames(1)
    bursts = modulated(phy, sent)
    assert [len(burst) for burst in bursts] == [phy.frame_samples(size) for size in SIZES]
    rms = math.sqrt(np.mean(np.abs(np.concatenate(bursts)) ** 2))
    assert rms == pytest.approx(phy.rms, rel=0.05)
    path = air(bursts, np.random.default_rng(2), rms=phy.rms, snr_db=SNR_DB, level=0.1, tail=4000)
    heard = list(phy.decode([path.samples]))
    assert [frame.payload for frame in heard] == sent
    assert [frame.sequence for frame in heard] == list(range(len(sent)))
    for frame, start, burst in zip(heard, path.starts, bursts, strict=True):
        assert frame.crc_ok
        assert abs(frame.sample - start) <= 2
        assert frame.nsamples == len(burst)
        assert frame.mode in (phy.mode(), None)
        assert frame.snr_db is None or frame.snr_db == pytest.approx(SNR_DB, abs=3)
        assert frame.evm_db is None or frame.evm_db < -SNR_DB / 2
        assert frame.cfo_hz is None or abs(frame.cfo_hz) < RATE_SPS * 5e-4
        assert frame.rssi_db is None or frame.rssi_db == pytest.approx(20 * math.log10(0.1 * phy.rms), abs=1)
    # the same frames make the same samples, and the same samples the same frames
    again = modulated(phy, sent)
    assert all(np.array_equal(one, other) for one, other in zip(bursts, again, strict=True))
    assert list(phy.decode(np.array_split(path.samples, 7))) == heard


@pytest.mark.slow
def test_what_is_no_frame_is_not_heard(phy: Any) -> None:
    rng = np.random.default_rng(3)
    from tests.harness.bursts import modulated

    noise = rng.standard_normal(400_000, np.float32).view(np.complex64)
    tone = np.exp(0.3j * np.arange(100_000)).astype(np.complex64)
    for samples in (np.zeros(100_000, np.complex64), noise, 1e6 * noise, 1e-9 * noise, tone):
        assert [frame for frame in phy.decode([samples.astype(np.complex64)]) if frame.crc_ok] == []
    theirs = modulated(made(phy.name, network=1), frames(4))
    path = air(theirs, rng, rms=phy.rms, snr_db=SNR_DB, tail=4000)
    assert list(phy.decode([path.samples])) == []


@pytest.mark.slow
def test_a_damaged_burst_does_no_harm_to_the_next(phy: Any) -> None:
    from tests.harness.bursts import modulated

    sent = frames(5)
    bursts = modulated(phy, sent)
    rng = np.random.default_rng(6)
    # the largest is overwhelmed in its second half, and the first of the next round is heard
    half = len(bursts[-1]) // 2
    hit = bursts[-1].copy()
    hit[half:] += (phy.rms * rng.standard_normal(2 * (len(hit) - half), np.float32).view(np.complex64)).astype(
        np.complex64
    )
    path = air([hit, *bursts[:-1]], rng, rms=phy.rms, snr_db=SNR_DB, tail=4000)
    heard = list(phy.decode([path.samples]))
    assert [frame.payload for frame in heard if frame.crc_ok] == sent[:-1]
    assert all(frame.sequence == len(sent) - 1 for frame in heard if not frame.crc_ok)


def test_frames_that_do_not_fit_are_refused(phy: Any) -> None:
    from flowgraphs.phy import PhyError

    assert phy.frame_samples(phy.max_frame_bytes) > 0
    with pytest.raises(PhyError, match=f"not of {phy.max_frame_bytes + 1}"):
        phy.frame_samples(phy.max_frame_bytes + 1)


def test_denser_modes_are_denser_and_a_scenario_has_them(phy: Any) -> None:
    modes = list(phy.denser())
    airtimes = [phy.frame_samples(1400), *(other.frame_samples(1400) for _, _, other in modes)]
    assert all(denser < sparser for sparser, denser in pairwise(airtimes))
    for option, value, other in modes:
        radio = PHY.scenario(phy.name, **{option: value}).radio
        assert (radio.mode, other.name) == (other.mode(), phy.name)
