"""The native PHY ofdm against the same in plain Python: the same bursts, the same frames, the same figures."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowgraphs.native import native
from flowgraphs.phy import Received, Samples
from flowgraphs.phys.ofdm.modem import MAX_FRAME_BYTES, Demodulator, Modulator, OfdmPhy
from flowgraphs.phys.ofdm.options import FEC, MODULATIONS
from tests.harness.awgn import air
from tests.harness.ofdm_reference import modem as reference

pytestmark = pytest.mark.slow

SHAPES = [(16, 4, 0), (32, 8, 2), (64, 16, 4), (128, 16, 0), (256, 32, 8)]
#: dB: both compute in floats, whose sums they take in another order
ROUNDING_DB = 1e-3
NOISE_DB = 35.0
#: dB: how much worse a frame's SNR and EVM may be than the reference's: both depend on estimates of carrier and phase,
#: which liquid takes from less of the frame
ESTIMATE_DB = 0.7
#: SNR (dB) from which a mode loses no frame but by liquid's bad estimates
SAFE_DB = {"bpsk": 13.0, "qpsk": 16.0, "qam16": 23.0, "qam64": 29.0}


def phy(modulation: str = "qpsk", fec: str = "none", **options: Any) -> OfdmPhy:
    return OfdmPhy(2e6, modulation=modulation, fec=fec, **options)


def bursts(of: OfdmPhy, rng: np.random.Generator, *sizes: int) -> list[Samples]:
    modulator = Modulator(of)
    return [modulator.modulate(rng.bytes(size)) for size in sizes]


def by_both(of: OfdmPhy, samples: Samples) -> tuple[dict[int, Received], dict[int, Received]]:
    """Return the frames that the native receiver hears, and the reference, by number."""
    heard, expected = Demodulator(of).feed(samples), reference.Demodulator(of).feed(samples)
    return {frame.sequence: frame for frame in heard}, {frame.sequence: frame for frame in expected}


def no_worse(of: OfdmPhy, samples: Samples) -> dict[int, Received]:
    """Return what the native receiver hears, no frame of the reference's good ones being lost or told otherwise."""
    heard, expected = by_both(of, samples)
    for number, other in expected.items():
        if not other.crc_ok:
            continue
        frame = heard[number]
        assert known(frame) == known(other)
        assert frame.rssi_db == pytest.approx(other.rssi_db, abs=ROUNDING_DB)
        assert figure(frame.evm_db) < figure(other.evm_db) + ESTIMATE_DB
        assert figure(frame.snr_db) > figure(other.snr_db) - ESTIMATE_DB
    return heard


def figure(value: float | None) -> float:
    """Return a figure that this PHY always gives."""
    assert value is not None
    return value


def known(frame: Received) -> tuple[object, ...]:
    return frame.payload, frame.crc_ok, frame.sequence, frame.sample, frame.nsamples, frame.mode


def test_both_know_the_same_modes() -> None:
    module = native()
    assert (module.MODULATIONS, module.FECS, module.MAX_FRAME_BYTES) == (MODULATIONS, FEC, MAX_FRAME_BYTES)


@pytest.mark.parametrize("fec", FEC)
@pytest.mark.parametrize("modulation", MODULATIONS)
def test_bursts_are_the_same_sample_by_sample(modulation: str, fec: str) -> None:
    # each modulation, and each code with four modulations, takes another shape
    subcarriers, cyclic_prefix, taper = SHAPES[
        (list(MODULATIONS).index(modulation) + list(FEC).index(fec)) % len(SHAPES)
    ]
    options = {"subcarriers": subcarriers, "cyclic_prefix": cyclic_prefix, "taper": taper, "rms": 0.3, "network": 515}
    of = phy(modulation, fec, **options)
    ours, theirs = Modulator(of), reference.Modulator(of)
    rng = np.random.default_rng(1)
    # with their CRC whole words of Hamming (7,4) in whole octets: liquid leaves other frames' last bits undefined
    for size in (4, 60, 332, 1500):
        frame = rng.bytes(size)
        assert np.array_equal(ours.modulate(frame), theirs.modulate(frame))


@given(
    st.sampled_from(sorted(MODULATIONS)),
    st.sampled_from(sorted(FEC)),
    st.sampled_from(SHAPES[1:]),
    st.floats(1, 15),
    st.floats(-0.4, 0.4),
    st.integers(0, 1 << 32),
)
def test_no_frame_of_the_references_is_lost(
    modulation: str, fec: str, shape: tuple[int, int, int], above_db: float, spacings: float, seed: int
) -> None:
    subcarriers, cyclic_prefix, taper = shape
    of = phy(modulation, fec, subcarriers=subcarriers, cyclic_prefix=cyclic_prefix, taper=taper)
    rng = np.random.default_rng(seed)
    sent = bursts(of, rng, 1, 30, 200, 500)
    snr_db = SAFE_DB[modulation] + above_db
    heard = no_worse(of, air(sent, rng, rms=of.rms, snr_db=snr_db, cfo=spacings / subcarriers).samples)
    for frame in heard.values():
        assert figure(frame.cfo_hz) / of.rate_sps * subcarriers == pytest.approx(spacings, abs=0.03)


@pytest.mark.parametrize("late", [0.5, 1.0, 4.0, 8.0])
@pytest.mark.parametrize(
    ("modulation", "fec"), [("bpsk", "none"), ("qpsk", "none"), ("qam16", "none"), ("qam64", "golay2412")]
)
def test_no_frame_over_two_paths_is_lost(modulation: str, fec: str, late: float) -> None:
    rng = np.random.default_rng(2)
    of = phy(modulation, fec)
    direct = air(bursts(of, rng, *[300] * 12), rng, rms=of.rms, cfo=-0.003).samples
    delay = np.exp(-2j * np.pi * late * np.fft.fftfreq(len(direct)))
    echo = np.fft.ifft(np.fft.fft(direct) * delay * 10 ** (-3 / 20) * np.exp(2j))
    noise = of.rms * 10 ** (-NOISE_DB / 20) / math.sqrt(2) * rng.standard_normal(2 * len(direct)).view(np.complex128)
    heard = no_worse(of, (direct + echo + noise).astype(np.complex64))
    assert sum(frame.crc_ok for frame in heard.values()) >= 10


@pytest.mark.parametrize(("modulation", "snr_db"), [("bpsk", 8.3), ("qpsk", 11.5), ("qam16", 18.5), ("qam64", 24.5)])
def test_as_many_frames_are_good_at_the_edge(modulation: str, snr_db: float) -> None:
    """Where a tenth is lost, good frames, damaged ones and repaired ones come together; one more or less is chance."""
    rng = np.random.default_rng(3)
    of = phy(modulation)
    samples = air(bursts(of, rng, *[1500] * 40), rng, rms=of.rms, snr_db=snr_db, cfo=0.002).samples
    heard, expected = by_both(of, samples)
    assert heard.keys() == expected.keys()
    assert {frame.crc_ok for frame in heard.values()} == {True, False}
    good, theirs = (sum(frame.crc_ok for frame in frames.values()) for frames in (heard, expected))
    assert good >= theirs - 1
    for number, frame in heard.items():
        assert (frame.sample, frame.nsamples, frame.mode) == (
            expected[number].sample,
            expected[number].nsamples,
            expected[number].mode,
        )


def test_samples_that_are_no_numbers_do_no_harm() -> None:
    """A recording may hold them."""
    rng = np.random.default_rng(4)
    of = phy("qam64")
    samples = air(bursts(of, rng, 200, 200), rng, rms=of.rms, snr_db=NOISE_DB).samples
    wrong = samples.copy()
    wrong[len(wrong) // 3 :: 97] = np.nan
    wrong[len(wrong) // 2] = np.inf
    demodulator = Demodulator(of)
    demodulator.feed(wrong)
    demodulator.feed(np.zeros(10_000, np.complex64))
    assert len(Demodulator(of).feed(samples)) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"modulation": "qam256"}, "there is no modulation 'qam256': choose from bpsk, qpsk, qam16, qam64"),
        ({"fec": "v27"}, "there is no code 'v27': choose from none, rep3"),
        ({"subcarriers": 63}, "subcarriers is 63: must be an even number from 16 to 2048"),
        ({"subcarriers": -64}, "subcarriers is -64: must be 0 or more"),
        ({"cyclic_prefix": 40}, "cyclic_prefix is 40: must be 4 or more, and half the subcarriers, 32, at most"),
        ({"taper": 16}, "taper is 16: must be less than cyclic_prefix, 16"),
        ({"rms": 1.5}, "rms is 1.5.*: must be more than 0 and 1 at most"),
        ({"network": 65536}, "network is 65536: must be 0 to 65535"),
    ],
)
def test_options_that_are_none_are_refused_without_fadelab_too(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        native().ofdm_transmitter(**options)
