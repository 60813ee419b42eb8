"""The synchronizer of PHY wifi finds 802.11 frames where they are, and nothing where there are none."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from flowgraphs.native import native
from flowgraphs.phys.wifi.modem import CARRIERS, GUARD, LONG_TRAINING, MAX_SYMBOLS
from tests.harness.awgn import Samples, air

USED = np.flatnonzero(LONG_TRAINING)
#: IEEE 802.11-2016, equation 17-6, by carrier
SHORT_TRAINING = {-24: 1, -20: -1, -16: 1, -12: -1, -8: -1, -4: 1, 4: -1, 8: -1, 12: 1, 16: 1, 20: 1, 24: 1}
#: samples that push a frame's last ones through
TAIL = 4096


def burst(symbols: NDArray[np.complex128]) -> Samples:
    """Return a frame of these symbols (carriers -32 to 31 in rows), of mean amplitude 1, written from the standard."""
    scale = CARRIERS / np.sqrt(len(USED))
    short = np.zeros(CARRIERS, np.complex128)
    for carrier, sign in SHORT_TRAINING.items():
        short[carrier + CARRIERS // 2] = sign * (1 + 1j) * np.sqrt(13 / 6)
    periods = np.tile(_ifft(short) * scale, 3)[:160]
    long = _ifft(LONG_TRAINING) * scale
    pieces = [periods, long[-2 * GUARD :], long, long]
    for row in symbols:
        wave = _ifft(row) * scale
        pieces += [wave[-GUARD:], wave]
    return np.concatenate(pieces).astype(np.complex64)


def qpsk(rng: np.random.Generator, n: int) -> NDArray[np.complex128]:
    symbols = np.zeros((n, CARRIERS), np.complex128)
    symbols[:, USED] = (rng.choice((-1, 1), (n, len(USED))) + 1j * rng.choice((-1, 1), (n, len(USED)))) / np.sqrt(2)
    return symbols


def received(samples: Samples, chunk: int = 1 << 20) -> list[tuple[Any, Samples]]:
    """Return the frames found in samples fed in chunks: preamble, symbols."""
    synchronizer = native().WifiSynchronizer()
    pieces = [synchronizer.feed(samples[first : first + chunk]) for first in range(0, len(samples), chunk)]
    rows, beginnings = joined(pieces)
    starts = [at for at, _ in beginnings]
    ends = [*starts[1:], len(rows)]
    return [(preamble, rows[at:end]) for (at, preamble), end in zip(beginnings, ends, strict=False)]


def joined(pieces: list[tuple[Samples, list[tuple[int, Any]]]]) -> tuple[Samples, list[tuple[int, Any]]]:
    """Return the symbols of all calls of `feed`, and with which of them frames begin."""
    beginnings, before = [], 0
    for carriers, found in pieces:
        beginnings += [(before + at, preamble) for at, preamble in found]
        before += len(carriers)
    return np.concatenate([np.empty((0, CARRIERS), np.complex64), *(carriers for carriers, _ in pieces)]), beginnings


@pytest.mark.parametrize("cfo_carriers", [-1.8, -0.5, 0.0, 0.03, 1.8])
@pytest.mark.parametrize("level", [1e-3, 1.0])
def test_frames_are_found_where_they_begin(cfo_carriers: float, level: float) -> None:
    rng = np.random.default_rng(20)
    cfo = cfo_carriers / CARRIERS
    sent = air([burst(qpsk(rng, 20)) for _ in range(50)], rng, rms=1, snr_db=3, cfo=cfo, level=level, tail=TAIL)
    found = [preamble for preamble, _ in received(sent.samples)]
    assert [preamble.sample for preamble in found] == list(sent.starts)
    offsets = np.array([preamble.cfo for preamble in found]) - 2 * np.pi * cfo
    # an estimate from 80 products of samples 64 apart: 1 / (64 sqrt(80 SNR)) rms; five of these for the worst of 50
    assert np.abs(offsets).max() < 5 / (64 * np.sqrt(80 * 10**0.3))
    power = np.array([preamble.power for preamble in found]) / level**2
    assert power.mean() == pytest.approx(1 + 10**-0.3, rel=0.02)


@pytest.mark.parametrize("snr_db", [5, 10, 20, 30])
def test_snr_is_that_of_a_sample(snr_db: float) -> None:
    rng = np.random.default_rng(21)
    sent = air([burst(qpsk(rng, 2)) for _ in range(200)], rng, rms=1, snr_db=snr_db, cfo=1e-3, tail=TAIL)
    seen = 10 * np.log10([preamble.snr for preamble, _ in received(sent.samples)])
    assert len(seen) == 200
    # 52 carriers tell one frame's noise to 0.6 dB: the mean is known to 0.05 dB, its logarithm is 0.1 dB high
    assert seen.mean() == pytest.approx(snr_db, abs=0.25)
    assert seen.std() < 0.9


def test_symbols_come_through_a_channel_with_their_phase_put_right() -> None:
    rng = np.random.default_rng(22)
    symbols = qpsk(rng, 30)
    channel = np.array([0.2, 0.9, 0, 0.4j, -0.2])
    wave = np.convolve(burst(symbols), channel).astype(np.complex64)
    sent = air([wave], rng, rms=1, snr_db=60, cfo=2e-3, tail=TAIL)
    [(preamble, rows)] = received(sent.samples)
    # the strongest path is the second one
    assert preamble.sample == sent.starts[0] + 1
    gains = rows[0, USED] * LONG_TRAINING[USED]
    assert np.abs(np.angle(gains)).max() < 0.02
    assert np.abs(rows[2:32, USED] / gains - symbols[:, USED]).max() < 0.05


@pytest.fixture(scope="module")
def stream() -> Samples:
    rng = np.random.default_rng(23)
    return air([burst(qpsk(rng, n)) for n in (3, 30, 9)], rng, rms=1, snr_db=8, tail=TAIL).samples


@given(chunks=st.lists(st.integers(1, 5000), min_size=1, max_size=20))
def test_what_is_found_does_not_depend_on_chunks(stream: Samples, chunks: list[int]) -> None:
    synchronizer, at, pieces = native().WifiSynchronizer(), 0, []
    for n in [*chunks, len(stream)]:
        pieces.append(synchronizer.feed(stream[at : at + n]))
        at += n
    rows, beginnings = joined(pieces)
    whole, whole_beginnings = native().WifiSynchronizer().feed(stream)
    assert np.array_equal(rows, whole)
    assert [(at, figures(preamble)) for at, preamble in beginnings] == [
        (at, figures(preamble)) for at, preamble in whole_beginnings
    ]


def figures(preamble: Any) -> tuple[int, float, float, float]:
    return preamble.sample, preamble.cfo, preamble.power, preamble.snr


@pytest.mark.parametrize(("snr_db", "least"), [(-1.0, 190), (1.0, 199), (25.0, 199)])
def test_weak_preambles_are_found_over_two_paths(snr_db: float, least: int) -> None:
    """At any frequency offset; docs/wifi.md has the shares of many frames over one path."""
    rng = np.random.default_rng(26)
    symbols = [qpsk(rng, int(rng.integers(1, 30))) for _ in range(200)]
    waves = []
    for each in symbols:
        wave = np.convolve(burst(each), [1, 0, 0, 0.4j])
        waves.append((wave * np.exp(2j * np.pi * rng.uniform(-0.02, 0.02) * np.arange(len(wave)))).astype(np.complex64))
    sent = air(waves, rng, rms=1, snr_db=snr_db, tail=TAIL)
    places = {start: number for number, start in enumerate(sent.starts)}
    found = {places[preamble.sample]: rows for preamble, rows in received(sent.samples) if preamble.sample in places}
    assert len(found) >= least
    for number, rows in found.items() if snr_db > 20 else ():
        # a channel of two paths, with its phase taken out, has a gain in each carrier
        expected, heard = symbols[number][:, USED], rows[2 : 2 + len(symbols[number]), USED]
        assert np.all(np.sign(heard.real) == np.sign(expected.real))
        assert np.all(np.sign(heard.imag) == np.sign(expected.imag))


@pytest.mark.parametrize(("snr_db", "carrier_db"), [(20, -25), (20, -20), (20, -10), (10, -10), (10, 0), (0, 0)])
def test_frames_are_found_where_they_begin_beside_a_carrier(snr_db: float, carrier_db: float) -> None:
    """The carrier is between the frames, too, as transmitters leak it; `carrier_db` over the frames."""
    rng = np.random.default_rng(42)
    waves = [burst(qpsk(rng, int(rng.integers(1, 30)))) for _ in range(200)]
    sent = air(waves, rng, rms=1, snr_db=snr_db, tail=TAIL)
    found = received((sent.samples + np.float32(10 ** (carrier_db / 20))).astype(np.complex64))
    assert [preamble.sample for preamble, _ in found] == list(sent.starts)


def test_a_frame_ends_with_the_next_preamble_or_the_longest_length() -> None:
    rng = np.random.default_rng(24)
    waves = [burst(qpsk(rng, 40)), burst(qpsk(rng, 5))]
    sent = air(waves, rng, rms=1, snr_db=20, gaps=[500, 80], tail=80 * MAX_SYMBOLS + TAIL)
    (_, first), (_, second) = received(sent.samples)
    assert 42 <= len(first) <= 44
    assert len(second) == 2 + MAX_SYMBOLS


@pytest.mark.parametrize("behind", [0, 40, 77, 160])
def test_frame_right_behind_a_gap_is_found(behind: int) -> None:
    """Wherever the device stopped in the frame before. Without the gap's place one in nine was missed."""
    rng = np.random.default_rng(40)
    for cut in [*range(0, 420, 10), *range(420, 3000, 257)]:
        before = air([burst(qpsk(rng, 40))], rng, rms=1, snr_db=10, gaps=[300]).samples[: 300 + cut]
        after = air([burst(qpsk(rng, n)) for n in (9, 5)], rng, rms=1, snr_db=10, gaps=[behind, 300], tail=TAIL)
        synchronizer = native().WifiSynchronizer()
        pieces = [synchronizer.feed(before)]
        synchronizer.gap()
        pieces.append(synchronizer.feed(after.samples))
        rows, beginnings = joined(pieces)
        found = {preamble.sample - len(before): at for at, preamble in beginnings}
        assert [sample for sample in found if sample >= 0] == list(after.starts), cut
        # long training and whole symbols of the frame that was cut, and nothing from behind the gap
        assert found[after.starts[0]] == (2 + (cut - 320) // 80 if len(found) == 3 else 0), cut
        assert len(found) == 3 or cut < 480, cut
        assert len(rows) > 2 + 9 + 2 + 5


def test_shortest_frame_that_ends_at_a_gap_is_whole() -> None:
    rng = np.random.default_rng(41)
    symbols = qpsk(rng, 2)
    for gap in range(300, 316):
        sent = air([burst(symbols)], rng, rms=1, snr_db=25, gaps=[gap], tail=0).samples
        synchronizer = native().WifiSynchronizer()
        pieces = [synchronizer.feed(sent)]
        synchronizer.gap()
        pieces.append(synchronizer.feed(np.zeros(TAIL, np.complex64)))
        rows, [(at, preamble)] = joined(pieces)
        assert (at, preamble.sample, len(rows)) == (0, gap, 4)


@pytest.mark.parametrize(
    ("amplitude", "frequency", "n"),
    [(0, 0.0, 4_000_000), (10, 0.0, 200_000), (10, 1 / 64, 200_000), (10, 0.1, 200_000)],
)
def test_nothing_is_found_in_noise_carriers_and_silence(n: int, amplitude: float, frequency: float) -> None:
    noise = np.random.default_rng(25).standard_normal(2 * n, np.float32).view(np.complex64)
    carrier = amplitude * np.exp(2j * np.pi * frequency * np.arange(n))
    assert received((noise + carrier).astype(np.complex64)) == []
    assert received(np.zeros(n, np.complex64)) == []


def test_a_frame_without_noise_has_an_snr() -> None:
    rng = np.random.default_rng(27)
    sent = air([burst(qpsk(rng, 3))], rng, rms=1, tail=TAIL)
    [(preamble, _)] = received(sent.samples)
    assert preamble.snr > 1e6


def _ifft(carriers: NDArray[np.complex128] | NDArray[np.float64]) -> NDArray[np.complex128]:
    return np.fft.ifft(np.fft.ifftshift(carriers))
