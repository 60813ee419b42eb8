"""The native module of PHY ofdm: liquid's own bursts, and options and samples that fadelab would not give it."""

from typing import Any

import numpy as np
import pytest

from flowgraphs.native import native
from flowgraphs.phys.ofdm.modem import MAX_FRAME_BYTES, Demodulator, Modulator, OfdmPhy
from flowgraphs.phys.ofdm.options import FEC, MODULATIONS
from tests.harness.awgn import air
from tests.harness.liquid import burst, generator

pytestmark = pytest.mark.slow

SHAPES = [(16, 4, 0), (32, 8, 2), (64, 16, 4), (128, 16, 0), (256, 32, 8)]
NOISE_DB = 35.0


def phy(modulation: str = "qpsk", fec: str = "none", **options: Any) -> OfdmPhy:
    return OfdmPhy(2e6, modulation=modulation, fec=fec, **options)


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
    ours, theirs = Modulator(of), generator(of, modulation, fec)
    rng = np.random.default_rng(1)
    # with their CRC whole words of Hamming (7,4) in whole octets: liquid leaves other frames' last bits undefined
    for sequence, size in enumerate((4, 60, 332, 1500)):
        frame = rng.bytes(size)
        assert np.array_equal(ours.modulate(frame), burst(of, theirs, sequence, frame, of.frame_samples(size)))


def test_samples_that_are_no_numbers_do_no_harm() -> None:
    """A recording may hold them."""
    rng = np.random.default_rng(4)
    of = phy("qam64")
    modulator = Modulator(of)
    samples = air([modulator.modulate(rng.bytes(200)) for _ in range(2)], rng, rms=of.rms, snr_db=NOISE_DB).samples
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
