"""The medium: what a receiver hears is exact in time, level and frequency, and does not depend on how it asks."""

import struct
from fractions import Fraction
from itertools import pairwise
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import ndtr

from channel.delay_profiles import Kind, Tap, profile
from flowgraphs.series import SeriesError, write_gains, write_series
from tests.harness.distributions import SIGMAS, assert_drawn_from
from tests.harness.medium import KEEP_TAP_POWERS, Medium, Samples

#: what an interpolator looks at around the sample at a position
BEFORE, AFTER = 11, 12


def noise_like(n: int, seed: int = 1) -> Samples:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(n) + 1j * rng.standard_normal(n)).astype(np.complex64)


def tone(cycles_per_sample: float, n: int, start: int = 0) -> NDArray[np.complex128]:
    return np.exp(2j * np.pi * cycles_per_sample * (start + np.arange(n)))


def error_db(heard: NDArray[Any], expected: NDArray[Any]) -> float:
    """The largest error against the mean level."""
    return float(20 * np.log10(np.abs(heard - expected).max() / np.sqrt(np.mean(np.abs(expected) ** 2))))


# In pieces


def in_pieces(cuts: list[int], n: int) -> list[tuple[int, int]]:
    edges = [0, *sorted(min(cut, n) for cut in cuts), n]
    return list(pairwise(edges))


TAPS = st.lists(
    st.builds(
        Tap,
        delay_ns=st.sampled_from([0.0, 1000.0, 330.0, 12345.0]),
        kind=st.sampled_from(Kind),
        k_db=st.just(3.0),
        doppler_hz=st.sampled_from([0.0, 5.0, 400.0, 20000.0]),
        los_doppler_hz=st.sampled_from([0.0, -70.0]),
    ),
    max_size=4,
)


@given(
    taps=TAPS,
    delay_ns=st.sampled_from([0.0, 5000.0, 1234.5]),
    tx_ppm=st.sampled_from([0.0, 2.5, -40.0]),
    cfo_hz=st.sampled_from([0.0, 321.5]),
    start=st.sampled_from([-700, 0, 12345, 10**12 + 17]),
    n=st.integers(1, 3000),
    cuts=st.lists(st.integers(0, 3000), max_size=6),
)
def test_pieces_give_the_same_bits(
    medium: Medium,
    taps: list[Tap],
    delay_ns: float,
    tx_ppm: float,
    cfo_hz: float,
    start: int,
    n: int,
    cuts: list[int],
) -> None:
    """Also a burst that begins and ends within, and through a path that has heard something else before."""
    options: dict[str, Any] = {"taps": taps, "delay_ns": delay_ns, "tx_ppm": tx_ppm, "cfo_hz": cfo_hz}
    whole, pieces = medium.path(**options), medium.path(**options)
    first, _ = whole.needs(start, n)
    source = medium.burst(noise_like(2000), first + 200)
    expected = whole.hear(source, start, n)
    heard = np.zeros(n, np.complex64)
    pieces.hear(source, start + 100_000, 10)
    for begin, end in in_pieces(cuts, n):
        pieces.mix(source, start + begin, heard[begin:end])
    assert heard.tobytes() == expected.tobytes()


@given(
    taps=TAPS,
    tx_ppm=st.sampled_from([0.0, 1000.0, -1000.0]),
    start=st.sampled_from([0, 511, 10**12 + 17]),
    n=st.integers(1, 2000),
)
def test_nothing_is_looked_at_but_what_is_needed(
    medium: Medium, taps: list[Tap], tx_ppm: float, start: int, n: int
) -> None:
    """Samples beyond are not numbers, and would be heard as such."""
    path = medium.path(taps=taps, delay_ns=4321.0, tx_ppm=tx_ppm)
    first, end = path.needs(start, n)
    samples = noise_like(end - first + 64)
    samples[:32] = samples[-32:] = np.nan
    assert np.isfinite(path.hear(medium.burst(samples, first - 32), start, n)).all()


def test_a_whole_delay_needs_no_other_sample(medium: Medium) -> None:
    assert medium.path(delay_ns=7000.0).needs(100, 50) == (93, 143)
    assert medium.path(delay_ns=7500.0).needs(100, 50) == (92 - BEFORE, 142 + AFTER)


def test_silence_adds_nothing(medium: Medium) -> None:
    path = medium.path(taps=profile("eva", doppler_hz=30.0), delay_ns=10_000.0)
    assert not path.hear(medium.burst(noise_like(100), 0), 1000, 1000).any()


def test_paths_add_up(medium: Medium) -> None:
    source = medium.burst(noise_like(1000))
    one, other = medium.path(gain_db=-3.0), medium.path(delay_ns=2000.0)
    acc = np.zeros(900, np.complex64)
    one.mix(source, 10, acc)
    other.mix(source, 10, acc)
    np.testing.assert_allclose(acc, one.hear(source, 10, 900) + other.hear(source, 10, 900), atol=1e-6)


# Level


def test_levels_are_exact(medium: Medium) -> None:
    samples = noise_like(600)
    heard = medium.path(gain_db=-43.7, scale=12.5).hear(medium.burst(samples), 0, 600)
    np.testing.assert_allclose(heard, samples * (12.5 * 10 ** (-43.7 / 20)), rtol=1e-6)


def test_taps_have_unit_power_together(medium: Medium) -> None:
    """Unless the taps' own powers are to be kept."""
    taps = [Tap(0.0, -3.0), Tap(5000.0, -9.0, phase_rad=0.5)]
    impulse = medium.burst(np.ones(1, np.complex64))
    heard = medium.path(taps=taps).hear(impulse, 0, 10)
    assert np.sum(np.abs(heard) ** 2) == pytest.approx(1.0, rel=1e-6)
    assert np.abs(heard[0] / heard[5]) ** 2 == pytest.approx(10**0.6, rel=1e-5)
    assert np.angle(heard[5]) == pytest.approx(0.5, rel=1e-5)
    kept = medium.path(taps=taps, flags=KEEP_TAP_POWERS).hear(impulse, 0, 10)
    np.testing.assert_allclose(np.abs(kept[[0, 5]]) ** 2, [10**-0.3, 10**-0.9], rtol=1e-6)


# Delay


@pytest.mark.parametrize("ticks", [0, 1, 37, 4096, 250_000])
def test_a_delay_of_whole_samples_moves_them_and_changes_none(medium: Medium, ticks: int) -> None:
    samples = noise_like(1000)
    heard = medium.path(rate_sps=5e6, delay_ns=ticks * 200.0).hear(medium.burst(samples, 50), 50 + ticks, 1000)
    assert heard.tobytes() == samples.tobytes()


@pytest.mark.parametrize("fraction", [0.001, 0.1, 0.25, 1 / 3, 0.5, 0.7391, 0.999])
def test_a_delay_between_samples_errs_by_less_than_68_db(medium: Medium, fraction: float) -> None:
    """Tones up to 0.8 of the Nyquist frequency, which is the interpolator's pass band."""
    path = medium.path(rate_sps=1e6, delay_ns=(20 + fraction) * 1000)
    for cycles in np.linspace(-0.4, 0.4, 33):
        source = medium.burst(tone(cycles, 400).astype(np.complex64))
        expected = tone(cycles, 300) * np.exp(-2j * np.pi * cycles * (20 + fraction - 50))
        assert error_db(path.hear(source, 50, 300), expected) < -68


@pytest.mark.parametrize(("tx_ppm", "rx_ppm"), [(20.0, 0.0), (0.0, 20.0), (20.0, -20.0), (1.0, 1.0), (-7.5, 3.0)])
@pytest.mark.parametrize("tick", [0, 3_000_000_000])
def test_clocks_that_differ_drift_apart(medium: Medium, tx_ppm: float, rx_ppm: float, tick: int) -> None:
    """Receiver tick r is air time r / (1 + rx_ppm), which is (1 + tx_ppm) of that many transmitter ticks."""
    rate = (1 + Fraction(tx_ppm) / 10**6) / (1 + Fraction(rx_ppm) / 10**6)
    path = medium.path(tx_ppm=tx_ppm, rx_ppm=rx_ppm, delay_ns=50_000.0)
    delay = 50 * (1 + Fraction(tx_ppm) / 10**6)
    first, end = path.needs(tick, 2000)
    cycles = 0.37
    heard = path.hear(medium.burst(tone(cycles, end - first).astype(np.complex64), first), tick, 2000)
    start = float(tick * rate - delay - first)
    expected = np.exp(2j * np.pi * cycles * (start + float(rate) * np.arange(2000)))
    assert error_db(heard, expected) < -60


def test_equal_clock_errors_do_not_drift(medium: Medium) -> None:
    samples = noise_like(300)
    heard = medium.path(tx_ppm=12.0, rx_ppm=12.0).hear(medium.burst(samples, 10**12), 10**12, 300)
    assert heard.tobytes() == samples.tobytes()


# Frequency


@pytest.mark.parametrize("tick", [0, 777, 10**12, 10**13])
@pytest.mark.parametrize(("freq_offset_hz", "cfo_hz"), [(100.0, 0.0), (0.0, -2_345.75), (1e6, 62_500.0)])
def test_the_phase_is_exact_at_any_time(medium: Medium, tick: int, freq_offset_hz: float, cfo_hz: float) -> None:
    """To single precision, after weeks of air time (10^13 ticks at 5 Msps are 23 days)."""
    path = medium.path(rate_sps=5e6, freq_offset_hz=freq_offset_hz, cfo_hz=cfo_hz)
    heard = path.hear(medium.burst(np.ones(1300, np.complex64), tick), tick, 1300)
    cycles = Fraction(freq_offset_hz + cfo_hz) / 5_000_000
    # a double holds cycles per sample to 2^-56 or better, hence what 10^13 ticks make of that
    phases = np.array([float(cycles * (tick + i) % 1) for i in range(1300)])
    allowed = 1e-6 + 2 * np.pi * tick * 2.0**-56
    assert np.abs(heard - np.exp(2j * np.pi * phases)).max() < allowed


def test_a_fast_receiver_clock_sees_offsets_in_its_own_time(medium: Medium) -> None:
    """The offset is in hertz of air time, a receiver's tick is shorter than nominal when its clock is fast."""
    path = medium.path(rate_sps=1e6, freq_offset_hz=1000.0, rx_ppm=500.0, tx_ppm=500.0)
    heard = path.hear(medium.burst(np.ones(200_000, np.complex64)), 0, 200_000)
    turned = np.unwrap(np.angle(heard.astype(np.complex128)))[-1] / (2 * np.pi)
    assert turned == pytest.approx(199_999 * 1e-3 / 1.0005, rel=1e-6)


# Noise


def test_noise_in_pieces_has_the_same_bits(medium: Medium) -> None:
    whole = medium.noise(5, 2).draw(-1000, 5000)
    noise = medium.noise(5, 2)
    pieces = np.zeros(5000, np.complex64)
    for begin, end in in_pieces([1, 2, 255, 256, 257, 1000, 1256, 3333], 5000):
        noise.add(begin - 1000, pieces[begin:end])
    assert pieces.tobytes() == whole.tobytes()


def test_noise_is_normal_by_a_ks_test(medium: Medium) -> None:
    """At level 1e-4, on four million draws."""
    parts = medium.noise(seed=12).draw(0, 1 << 21, sigma=sqrt(2)).view(np.float32).astype(np.float64)
    assert_drawn_from(parts, ndtr)


def test_noise_has_the_right_tails(medium: Medium) -> None:
    """Of 134 million draws, the counts beyond 2 to 4.5 sigma on either side, within five standard deviations; and
    by a KS test at level 1e-4 the shape of all beyond 3.66, which come from the ziggurat's tail alone."""
    noise = medium.noise(seed=13)
    limits = (2.0, 3.0, 3.6, 3.7, 4.0, 4.5)
    counts = dict.fromkeys([*limits, *(-limit for limit in limits)], 0)
    extremes = []
    blocks = 64
    for block in range(blocks):
        parts = noise.draw(block << 20, 1 << 20, sigma=sqrt(2)).view(np.float32)
        outer = parts[np.abs(parts) > 2.0]
        for limit in limits:
            counts[limit] += int(np.count_nonzero(outer > limit))
            counts[-limit] += int(np.count_nonzero(outer < -limit))
        extremes.append(np.abs(outer[np.abs(outer) > 3.66]))
    for limit, count in counts.items():
        expected = (blocks << 21) * ndtr(-abs(limit))
        assert abs(count - expected) < SIGMAS * sqrt(expected), limit
    tail = np.concatenate(extremes).astype(np.float64)
    assert_drawn_from(tail, lambda x: 1 - ndtr(-x) / ndtr(-3.66))


def test_noise_is_white(medium: Medium) -> None:
    noise = medium.noise(seed=14).draw(0, 1 << 20)
    bound = SIGMAS / sqrt(len(noise))
    for lag in (1, 2, 3, 127, 128, 255, 256, 257, 512):
        assert abs(np.mean(noise[lag:] * np.conj(noise[:-lag]))) < bound
        assert abs(np.mean(noise[lag:] * noise[:-lag])) < bound
    assert abs(np.mean(noise * noise)) < 2 * bound


@pytest.mark.parametrize(("seed", "port"), [(15, 1), (15, 2), (16, 0), (0, 15)])
def test_noise_of_other_receivers_and_seeds_is_independent(medium: Medium, seed: int, port: int) -> None:
    n = 1 << 19
    one, other = medium.noise(15, 0).draw(0, n), medium.noise(seed, port).draw(0, n)
    for shift in (0, 1, 256):
        assert abs(np.mean(np.roll(one, shift) * np.conj(other))) < SIGMAS / sqrt(n)


# Series


def test_a_series_is_followed_linearly_and_repeats(medium: Medium, tmp_path: Path) -> None:
    rows = np.array([[1.0], [0.5j], [-2.0], [0.25]])
    write_series(tmp_path / "gains", 4096_000.0, (0.0,), rows)
    path = medium.path(series=tmp_path / "gains", rate_sps=1e6)
    n = 5 * 4096
    heard = path.hear(medium.burst(np.ones(n, np.complex64)), 0, n)
    cycle = np.concatenate([rows[:, 0], rows[:2, 0]])
    position = np.arange(n) / 4096
    expected = np.interp(position, np.arange(6), cycle.real) + 1j * np.interp(position, np.arange(6), cycle.imag)
    np.testing.assert_allclose(heard, expected, atol=1e-6)


def test_a_series_off_the_grid_errs_at_its_corners_only(medium: Medium, tmp_path: Path) -> None:
    """Between its corners a line is a line; at one, the error is a sixteenth of an interval's bend at most."""
    rows = np.where(np.arange(50) % 2, 1.0, 0.0)[:, np.newaxis]
    write_series(tmp_path / "gains", 777_777.0, (0.0,), rows)
    heard = medium.path(series=tmp_path / "gains").hear(medium.burst(np.ones(30_000, np.complex64)), 0, 30_000)
    triangle = np.interp(np.arange(30_000) / 777.777, np.arange(50), rows[:, 0])
    error = np.abs(heard - triangle)
    assert error.max() < 1 / 16
    assert np.median(error) < 1e-6


def test_a_series_of_taps_has_delays_and_levels(medium: Medium, tmp_path: Path) -> None:
    """It is not normalised, and the path's own gain and delay still count."""
    write_series(tmp_path / "taps", 1e6, (0.0, 3000.0), np.array([[1.0, 2.0j]]))
    path = medium.path(series=tmp_path / "taps", gain_db=-20.0, delay_ns=2000.0)
    heard = path.hear(medium.burst(np.ones(1, np.complex64)), 0, 8)
    np.testing.assert_allclose(heard, np.array([0, 0, 0.1, 0, 0, 0.2j, 0, 0]), atol=1e-7)


def test_gains_in_db_make_a_series(medium: Medium, tmp_path: Path) -> None:
    write_gains(tmp_path / "gains", 4096_000.0, [-20.0, -40.0])
    heard = medium.path(series=tmp_path / "gains").hear(medium.burst(np.ones(4097, np.complex64)), 0, 4097)
    np.testing.assert_allclose(heard[[0, 2048, 4096]], [0.1, 0.055, 0.01], rtol=1e-5)
    assert [file.name for file in tmp_path.iterdir()] == ["gains"]


@pytest.mark.parametrize(
    ("interval_ns", "delays_ns", "taps", "message"),
    [
        (1.0, (0.0,), [1.0, 2.0], r"taps have shape \(2,\)"),
        (1.0, (0.0, 1.0), [[1.0]], r"it must be \(rows, 2\)"),
        (1.0, [0.0] * 25, [[1.0] * 25], "there are 25 taps"),
        (1.0, (), np.ones((1, 0)), "there are 0 taps"),
        (1.0, (0.0,), np.ones((0, 1)), "there are no rows"),
        *((wrong, (0.0,), [[1.0]], "interval_ns is .*; it must lie") for wrong in (0.0, 0.5, 1e19, np.nan)),
        (1.0, (-1.0,), [[1.0]], "delays_ns must lie between"),
        *((1.0, (0.0,), [[wrong]], "taps must be numbers of magnitude") for wrong in (np.nan, np.inf, 1e11j)),
    ],
)
def test_series_that_cannot_be(tmp_path: Path, interval_ns: float, delays_ns: Any, taps: Any, message: str) -> None:
    with pytest.raises(SeriesError, match=message):
        write_series(tmp_path / "taps", interval_ns, delays_ns, taps)
    assert not list(tmp_path.iterdir())


def header(
    magic: bytes = b"FADESER1", n_taps: int = 1, interval_ns: float = 1.0, n_rows: int = 1, delay_ns: float = 0.0
) -> bytes:
    return struct.pack("<8sIIdQd", magic, n_taps, 0, interval_ns, n_rows, delay_ns)


@pytest.mark.parametrize(
    ("octets", "message"),
    [
        (b"", "is empty or not a file"),
        (b"FADESER1", "too short"),
        (header(b"RIFFWAVE") + bytes(8), "not a series of taps"),
        (header(b"FADESER2") + bytes(8), "a series of version 2; this program reads 1"),
        (header(n_taps=0), "has 0 taps"),
        (header(n_taps=25) + bytes(1000), "has 25 taps"),
        *(
            (header(interval_ns=wrong) + bytes(8), "its interval does not lie between 1 and 1e18 ns")
            for wrong in (0.0, -1.0, 1e-300, 1e300, float("nan"), float("inf"))
        ),
        (header(n_rows=0), "has no rows"),
        (header() + bytes(7), "47 bytes long, which does not fit 1 rows of 1 taps"),
        (header(n_rows=1 << 61) + bytes(8), "does not fit"),
        (header(n_taps=4) + bytes(8), "does not fit"),
        (header(delay_ns=-1.0) + bytes(8), "the delay of tap 0"),
        (None, "taps: No such file or directory"),
    ],
)
def test_files_that_are_no_series(medium: Medium, tmp_path: Path, octets: bytes | None, message: str) -> None:
    file = tmp_path / "taps"
    if octets is not None:
        file.write_bytes(octets)
    with pytest.raises(ValueError, match=message) as raised:
        medium.path(series=file)
    assert str(file) in str(raised.value)
    assert "\n" not in str(raised.value)


# Interference


@pytest.mark.parametrize("start", [0, 40, -3])
def test_a_recording_is_played_over_and_over(medium: Medium, tmp_path: Path, start: int) -> None:
    samples = noise_like(100)
    (tmp_path / "iq").write_bytes(samples.tobytes())
    source = medium.interference(tmp_path / "iq", start)
    for tick, n in ((0, 5), (95, 20), (-250, 1000), (10**12, 3)):
        expected = samples[(tick - start + np.arange(n)) % 100]
        np.testing.assert_array_equal(source.read(tick, n), expected)
        np.testing.assert_array_equal(medium.path().hear(source, tick, n), expected)


def test_what_is_no_recording_is_refused(medium: Medium, tmp_path: Path) -> None:
    file = tmp_path / "iq"
    for octets, message in ((b"", "is empty"), (bytes(12), "its 12 bytes are no multiple of 8")):
        file.write_bytes(octets)
        with pytest.raises(ValueError, match=message):
            medium.interference(file)
    with pytest.raises(ValueError, match="is empty or not a file"):
        medium.interference(tmp_path)


# Options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gain_db": float("nan")}, "gain_db must be a finite number"),
        ({"delay_ns": -1.0}, "delay_ns must lie between 0 and 1e9"),
        ({"delay_ns": 2e9}, "delay_ns must lie between 0 and 1e9"),
        ({"gain_db": 201.0}, "gain_db must be at most 200 dB"),
        ({"cfo_hz": float("inf")}, "cfo_hz must be a finite number"),
        ({"cfo_hz": -2e9}, "cfo_hz must lie between -1e9 and 1e9 Hz"),
        ({"flags": 2}, "flags has unknown bits"),
        ({"taps": [Tap()] * 25}, "a path has 0 to 24 taps, not 25"),
        ({"taps": [Tap(), Tap(delay_ns=-1.0)]}, "tap 1: delay_ns must lie"),
        ({"taps": [Tap(doppler_hz=-1.0)]}, "tap 0: doppler_hz must be 0 or more"),
        ({"taps": [Tap(doppler_hz=1e308)]}, "tap 0: doppler_hz must lie between -1e9 and 1e9 Hz"),
        ({"taps": [Tap(los_doppler_hz=1e308)]}, "tap 0: los_doppler_hz must lie between"),
        ({"taps": [Tap(k_db=1e308)]}, "tap 0: k_db must be at most 200 dB"),
        ({"taps": [Tap(power_db=float("nan"))]}, "tap 0: power_db must be a finite number"),
        ({"series": Path("taps")}, "series_path must be absolute"),
        ({"series": Path("/taps"), "taps": [Tap()]}, "taps of its own or those of a series, not both"),
        ({"rate_sps": 0.0}, "rate_sps must be positive"),
        ({"tx_ppm": 1001.0}, "clock offsets must lie within 1000 ppm"),
    ],
)
def test_options_no_path_can_have(medium: Medium, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as raised:
        medium.path(**options)
    assert "\n" not in str(raised.value)


def test_hashes_tell_names_apart(medium: Medium) -> None:
    names = ["", "V", "V1", "V1:0", "V1:1", "V2:0", "V1:0>V2:0", "V2:0>V1:0"]
    hashes = {medium.hash(seed, name) for seed in (0, 1, 2**64 - 1) for name in names}
    assert len(hashes) == 3 * len(names)
