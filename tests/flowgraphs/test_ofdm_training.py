"""Training and pilots of PHY `ofdm`: fixed values, which no release of liquid-dsp changes.

The values are those of liquid 1.3 to 1.5, asked of its `msequence`; from 1.6 on its default sequences are others.
"""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from flowgraphs.native import BUILD, native
from flowgraphs.phy import Samples
from flowgraphs.phys.ofdm.modem import Demodulator, Modulator, OfdmPhy

pytestmark = pytest.mark.slow

#: by subcarriers: signs of S0's and of S1's active subcarriers in the order of the FFT, a set bit for +1
TRAINING = {
    16: ("a0", "dcc0"),
    32: ("f300", "a64699"),
    64: ("2834a0", "19b1ce82ad2500"),
    128: ("55a4a78feede80", "4e5b13fd932b2214e5b13fd930"),
    256: ("ad5f5161250cd01ad5f5161250", "4c59e8c339ddf9b78cab2e0e1f5841174b576d7b991a05f4f920"),
    512: (
        "ad5f5161250cc7a5da680d6afa9a035abea2c24a198f4bb4d010",
        "4c59e8c339ddf9b78cab2e0e1d0b71418ff886eb0822e96aeda1e58d9a49ad11ec06a751ca2a533056c4afeb909138ec9e1480",
    ),
}
#: the pilots of a frame, from its first symbol on and from the lowest frequency, over and over
PILOTS = "b1e87f90a7d57062b32fde6ee54a25a339e361175edf0d35b504ec9303a47100"
#: a burst of liquid 1.5's own ofdmflexframegen with noise and a carrier offset: I and Q in turn, 8 bits each
RECORDED = Path(__file__).with_name("liquid_1_5.cs8")


def symbols(of: OfdmPhy, burst: Samples) -> NDArray[np.complex128]:
    """Return the subcarriers of every OFDM symbol of a burst."""
    step = of.subcarriers + of.cyclic_prefix
    rows = burst[: len(burst) // step * step].reshape(-1, step)[:, of.cyclic_prefix :]
    return np.fft.fft(rows.astype(np.complex128), axis=1)


def signs(values: NDArray[np.complex128]) -> str:
    assert np.abs(values.imag).max() < 1e-4 * np.abs(values).max()
    assert np.ptp(np.abs(values)) < 1e-4 * np.abs(values).max()
    return np.packbits(values.real > 0).tobytes().hex()


@pytest.mark.parametrize("subcarriers", TRAINING)
def test_transmitted_training_has_the_golden_signs(subcarriers: int) -> None:
    of = OfdmPhy(2.5e6, subcarriers=subcarriers, cyclic_prefix=8, taper=2)
    first, second, third, *_ = symbols(of, Modulator(of).modulate(b"x"))
    active = of.format.active
    even = active[active % 2 == 0]
    assert (signs(second[even]), signs(third[active])) == TRAINING[subcarriers]
    # the first S0 begins a prefix earlier, which turns its subcarriers
    turned = first * np.exp(2j * np.pi * np.arange(subcarriers) * of.cyclic_prefix / subcarriers)
    odd = active[active % 2 == 1]
    assert np.abs(second[odd]).max() < 1e-4 * np.abs(second[even]).min()
    assert np.allclose(turned[even], second[even], atol=0.1 * np.abs(second[even]).min())


def test_transmitted_pilots_have_the_golden_signs() -> None:
    of = OfdmPhy(2.5e6, modulation="bpsk")
    carriers = symbols(of, Modulator(of).modulate(bytes(400)))[3:, of.format.pilots].ravel()
    assert len(carriers) > 255
    assert signs(carriers[:255]) == PILOTS
    assert signs(carriers[255:]) == signs(carriers[: len(carriers) - 255])


def test_frame_recorded_with_liquid_1_5_decodes() -> None:
    pairs = np.frombuffer(RECORDED.read_bytes(), np.int8).reshape(-1, 2).astype(np.float32) / 127
    (got,) = Demodulator(OfdmPhy(2.5e6, network=7)).feed(pairs.view(np.complex64).ravel())
    assert (got.payload, got.crc_ok, got.sequence) == (b"sent by liquid-dsp 1.5.0", True, 41)


def test_native_library_asks_liquid_for_no_sequence() -> None:
    native()
    library = (BUILD / "libgnuradio-fadelab.so").read_bytes()
    assert b"packetizer_create" in library
    for name in (b"msequence_", b"ofdmframegen_", b"ofdmframesync_", b"ofdmflexframe"):
        assert name not in library, name
