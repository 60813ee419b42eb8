"""PHY ofdm's receiver of samples that no transmitter of ours sends: no harm, and the next frame is heard.

Every test also divides the samples in another way, since the reports must not depend on that.
"""

import sys
from collections.abc import Callable

import numpy as np
import pytest

from flowgraphs.phy import Received, Samples
from flowgraphs.phys.ofdm.modem import Demodulator, Modulator, OfdmPhy
from tests.harness.awgn import air
from tests.harness.liquid import burst as liquids_burst
from tests.harness.liquid import generator

pytestmark = pytest.mark.slow

PHY = OfdmPhy(2e6, modulation="qam16")
NOISE_DB = 30.0
NETWORK = 7
#: samples of a symbol
SYMBOL = PHY.subcarriers + PHY.cyclic_prefix
#: training and header
HEAD = 9 * SYMBOL
#: liquid's longest payload
LIQUIDS_LONGEST = 65535


def heard(samples: Samples, of: OfdmPhy = PHY) -> list[Received]:
    whole = Demodulator(of).feed(samples)
    demodulator = Demodulator(of)
    pieces = [frame for at in range(0, len(samples), 777) for frame in demodulator.feed(samples[at : at + 777])]
    assert [repr(frame) for frame in pieces] == [repr(frame) for frame in whole]
    return whole


def noise(rng: np.random.Generator, count: int) -> Samples:
    values = rng.standard_normal(2 * count, np.float32).view(np.complex64)
    return (values * np.float32(PHY.rms * 10 ** (-NOISE_DB / 20) / np.sqrt(2))).astype(np.complex64)


def frames(seed: int, *sizes: int, of: OfdmPhy = PHY) -> tuple[list[bytes], list[Samples], np.random.Generator]:
    rng = np.random.default_rng(seed)
    modulator = Modulator(of)
    sent = [rng.bytes(size) for size in sizes]
    return sent, [modulator.modulate(frame) for frame in sent], rng


def received(rng: np.random.Generator, *pieces: Samples) -> Samples:
    samples = np.concatenate(pieces)
    return (samples + noise(rng, len(samples))).astype(np.complex64)


def silence(count: int) -> Samples:
    return np.zeros(count, np.complex64)


def of_another_program(nbytes: int, modulation: str, fec: str, fec1: str = "none") -> Samples:
    """Return the head of a liquid frame with our header's length and network."""
    return liquids_burst(PHY, generator(PHY, modulation, fec, fec1), 99, bytes(nbytes), HEAD)


def spoil(part: slice, value: complex) -> Callable[[Samples], None]:
    def damage(samples: Samples) -> None:
        samples[part] = value

    return damage


def scale(factor: float) -> Callable[[Samples], None]:
    def damage(samples: Samples) -> None:
        samples *= np.float32(factor)

    return damage


WRONG = {
    "no numbers": spoil(slice(None, None, 97), complex(np.nan)),
    "half a sample that is no number": spoil(slice(400, None, 1000), complex(np.nan, 0.5)),
    "infinities": spoil(slice(5, None, 50), complex(np.inf, -np.inf)),
    "largest numbers": scale(3e38),
    "squares too large": scale(1e19),
    "fourth powers too large": scale(1e10),
    "numbers too small": scale(1e-38),
}


@pytest.mark.parametrize("damage", WRONG.values(), ids=WRONG)
@pytest.mark.parametrize("begin", [0, 100, 2 * SYMBOL + 30, 4 * SYMBOL, HEAD + 200])
def test_samples_that_cannot_be_spoil_no_later_frame(damage: Callable[[Samples], None], begin: int) -> None:
    """They begin before the training, in it, in the header and in the payload of the first of two frames."""
    sent, (first, second), rng = frames(1, 300, 300)
    spoiled = first.copy()
    with np.errstate(over="ignore", invalid="ignore"):
        damage(spoiled[begin:])
    got = heard(
        np.concatenate([received(rng, silence(300)), spoiled, received(rng, silence(500), second, silence(100))])
    )
    assert got[-1].payload == sent[1]
    assert got[-1].sample == 300 + len(first) + 500


def test_noise_of_any_bits_does_no_harm() -> None:
    """Floats of random bits: numbers of all sizes, some infinite, some none."""
    sent, (burst,), rng = frames(2, 300)
    bits = rng.integers(0, 1 << 32, 400_000, np.uint32).view(np.complex64)
    got = heard(np.concatenate([bits, received(rng, silence(500), burst, silence(100))]))
    assert [frame.payload for frame in got] == sent


@pytest.mark.parametrize("kept", [SYMBOL, 2 * SYMBOL, 3 * SYMBOL, 5 * SYMBOL, HEAD - SYMBOL])
def test_a_frame_that_ends_in_its_head_costs_no_other(kept: int) -> None:
    sent, (first, second), rng = frames(3, 300, 300)
    # what is taken for S1's beginning is sought for eight symbols at most
    got = heard(received(rng, silence(200), first[:kept], silence(8 * SYMBOL), second, silence(100)))
    assert [(frame.sequence, frame.payload) for frame in got] == [(1, sent[1])]


def test_a_frame_that_ends_in_its_payload_is_damaged_and_costs_what_lies_in_its_length() -> None:
    sent, (first, second, third), rng = frames(4, 600, 30, 300)
    cut = HEAD + 5 * SYMBOL
    rest = silence(len(first) - cut - len(second) - 50)
    got = heard(received(rng, first[:cut], silence(50), second, rest, silence(100), third, silence(100)))
    assert [(frame.sequence, frame.crc_ok) for frame in got] == [(0, False), (2, True)]
    assert got[-1].payload == sent[2]


def test_an_overflow_within_a_frame_damages_that_frame_only() -> None:
    sent, (first, second), rng = frames(5, 600, 300)
    cut = HEAD + 7 * SYMBOL
    lost = 333
    samples = received(rng, silence(100), first[:cut], first[cut + lost :], silence(lost + 100), second, silence(100))
    got = heard(samples)
    assert [(frame.sequence, frame.crc_ok) for frame in got] == [(0, False), (1, True)]
    assert got[-1].payload == sent[1]


@pytest.mark.parametrize("above_db", [-20.0, 0.0, 20.0])
@pytest.mark.parametrize("late", [50, 2 * SYMBOL, HEAD, HEAD + 5 * SYMBOL])
def test_two_frames_over_each_other_cost_no_later_frame(above_db: float, late: int) -> None:
    sent, (first, second, third), rng = frames(6, 400, 400, 300)
    both = silence(late + len(second))
    both[: len(first)] = first
    both[late:] += second * np.float32(10 ** (above_db / 20))
    got = heard(received(rng, silence(100), both, silence(len(second)), third, silence(100)))
    assert (got[-1].payload, got[-1].crc_ok) == (sent[2], True)
    # the weaker one does no harm, if the stronger one came first
    assert above_db > -20.0 or got[0].payload == sent[0]


@pytest.mark.parametrize(
    ("nbytes", "modulation", "fec", "fec1"),
    [
        (LIQUIDS_LONGEST, "bpsk", "rep5", "none"),
        (10_001, "qpsk", "none", "none"),
        (1000, "qpsk", "none", "hamming74"),
    ],
)
def test_a_header_that_is_not_ours_hides_no_frame(nbytes: int, modulation: str, fec: str, fec1: str) -> None:
    """Such a frame takes up to two seconds, if it is one."""
    sent, (burst,), rng = frames(7, 300)
    head = of_another_program(nbytes, modulation, fec, fec1)
    got = heard(received(rng, silence(100), head, silence(100), burst, silence(100)))
    assert [frame.payload for frame in got] == sent


def test_another_networks_frame_hides_no_frame() -> None:
    other = OfdmPhy(2e6, network=NETWORK)
    theirs = Modulator(other).modulate(bytes(1000))
    sent, (burst,), rng = frames(8, 300)
    late = HEAD + 3 * SYMBOL
    both = theirs.copy()
    both[late : late + len(burst)] += burst * np.float32(30)
    got = heard(received(rng, silence(100), both, silence(100)))
    assert [frame.payload for frame in got] == sent
    assert [frame.sequence for frame in heard(received(rng, both, silence(100)), other)] == [0]


@pytest.mark.parametrize("missing", [1, 50, SYMBOL, 2 * SYMBOL, 3 * SYMBOL, HEAD])
def test_a_stream_may_begin_within_a_frame(missing: int) -> None:
    sent, (first, second), rng = frames(9, 300, 300)
    got = heard(received(rng, first[missing:], silence(8 * SYMBOL), second, silence(100)))
    assert got[-1].payload == sent[1]
    assert all(frame.sample >= 0 for frame in got)


@pytest.mark.parametrize("level", [1e-4, 1.0, 1e4])
def test_a_frame_has_any_level(level: float) -> None:
    sent, bursts, rng = frames(10, 300, 300)
    got = heard(air(bursts, rng, rms=PHY.rms, snr_db=NOISE_DB, level=level).samples)
    assert [frame.payload for frame in got] == sent


def test_numbers_near_zero_stay_what_they_are() -> None:
    """One of VOLK's kernels tells the calling thread's processor to take them for zero, in Python's numbers too."""
    _, (burst,), rng = frames(11, 300)
    assert len(heard(received(rng, burst, silence(100)))) == 1
    assert sys.float_info.min / 2 > 0
