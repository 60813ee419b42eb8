"""Fading: its distribution, correlation and crossings against theory, over many independent fades.

Seeds are fixed. Levels stand in `tests/harness/distributions.py`: Kolmogorov-Smirnov tests reject a right model with
probability 1e-4, means may lie five standard errors off.
"""

from collections.abc import Callable
from math import exp, pi, sqrt
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import j0

from channel.delay_profiles import Kind, Tap, profile
from tests.harness.distributions import assert_drawn_from, assert_mean
from tests.harness.medium import Medium, Source

RATE_SPS = 100_000
DOPPLER_HZ = 50.0
RAYLEIGH = profile("flat", doppler_hz=DOPPLER_HZ)
Gains = NDArray[np.complex128]


@pytest.fixture(scope="module")
def carrier(medium: Medium, tmp_path_factory: pytest.TempPathFactory) -> Source:
    """A transmitter that always sends 1, so that what is heard is the gain."""
    file = tmp_path_factory.mktemp("carrier") / "ones"
    file.write_bytes(np.ones(8192, np.complex64).tobytes())
    return medium.interference(file)


@pytest.fixture
def fades(medium: Medium, carrier: Source) -> Callable[..., Gains]:
    """Gains at the given ticks (columns) of paths with seeds 1 ... n (rows), options as `Medium.path` takes them."""

    def draw(n: int, ticks: list[int], **options: Any) -> Gains:
        options = {"rate_sps": RATE_SPS, **options}
        gains = np.empty((n, len(ticks)), np.complex128)
        for row in range(n):
            path = medium.path(seed=row + 1, **options)
            for column, tick in enumerate(ticks):
                gains[row, column] = path.hear(carrier, tick, 1)[0]
        return gains

    return draw


def rayleigh_cdf(envelope: NDArray[Any]) -> NDArray[Any]:
    return 1 - np.exp(-(envelope**2))


def uniform_cdf(phase: NDArray[Any]) -> NDArray[Any]:
    return (phase + np.pi) / (2 * np.pi)


@pytest.mark.parametrize("tick", [0, 123_456_789])
def test_envelopes_of_many_paths_are_rayleigh_and_phases_uniform(fades: Callable[..., Gains], tick: int) -> None:
    gains = fades(4000, [tick], taps=RAYLEIGH)[:, 0]
    assert_drawn_from(np.abs(gains), rayleigh_cdf)
    assert_drawn_from(np.angle(gains), uniform_cdf)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_envelope_of_one_path_over_time_is_rayleigh(medium: Medium, carrier: Source, seed: int) -> None:
    """Two taps apart by 200 ns and 10 Hz of Doppler; fades 10.3 s (a hundred coherence times) apart."""
    taps = profile("two-tap", doppler_hz=10.0, delay_spread_ns=100_000.0)
    path = medium.path(taps=taps, rate_sps=RATE_SPS, seed=seed)
    gains = np.array([path.hear(carrier, k * 1_030_003, 1)[0] for k in range(3000)])
    assert_drawn_from(np.abs(gains).astype(float), rayleigh_cdf)


def test_the_autocorrelation_is_bessels(fades: Callable[..., Gains]) -> None:
    """J0(2 pi f_D tau), its imaginary part 0, and nothing between a gain and itself unconjugated (Clarke)."""
    lags = [0, 100, 300, 500, 766, 1000, 1500, 2500, 4000]
    gains = fades(3000, lags, taps=RAYLEIGH)
    expected = j0(2 * pi * DOPPLER_HZ * np.array(lags) / RATE_SPS)
    for column, value in enumerate(expected):
        assert_mean(np.conj(gains[:, 0]) * gains[:, column], value)
        assert_mean(gains[:, 0] * gains[:, column])


def test_squared_envelopes_correlate_as_bessel_squared(fades: Callable[..., Gains]) -> None:
    """E[p(0) p(tau)] = 1 + J0^2 for Gaussian fading; a sum of 64 sinusoids lacks up to 2/64 of it."""
    lags = [0, 200, 500, 766, 1200]
    power = np.abs(fades(3000, lags, taps=RAYLEIGH)) ** 2
    expected = 1 + j0(2 * pi * DOPPLER_HZ * np.array(lags) / RATE_SPS) ** 2
    for column, value in enumerate(expected):
        assert_mean(power[:, 0] * power[:, column], value, also=2 / 64)


@pytest.mark.parametrize("level", [1.0, 0.5, 0.1])
def test_the_level_crossing_rate_and_fade_duration_are_rices(medium: Medium, carrier: Source, level: float) -> None:
    """sqrt(2 pi) f_D r exp(-r^2) crossings per second, each (exp(r^2) - 1) / (sqrt(2 pi) f_D r) long on average."""
    rate, seconds = 12_800, 4
    crossings, below = [], []
    for seed in range(300):
        path = medium.path(taps=RAYLEIGH, rate_sps=rate, seed=seed)
        faded = np.abs(path.hear(carrier, 0, rate * seconds)) < level
        crossings.append(np.count_nonzero(faded[1:] & ~faded[:-1]) / seconds)
        below.append(faded.mean())
    expected = sqrt(2 * pi) * DOPPLER_HZ * level * exp(-(level**2))
    assert_mean(np.array(crossings), expected)
    assert_mean(np.array(below), 1 - exp(-(level**2)))


@pytest.mark.parametrize("k_db", [-3.0, 6.0, 13.3])
def test_the_rician_k_factor_and_line_of_sight(fades: Callable[..., Gains], k_db: float) -> None:
    tap = Tap(kind=Kind.RICIAN, k_db=k_db, doppler_hz=DOPPLER_HZ, los_doppler_hz=20.0, phase_rad=0.7)
    ticks = [0, 1250, 3750]
    gains = fades(3000, ticks, taps=[tap])
    k = 10 ** (k_db / 10)
    for column, tick in enumerate(ticks):
        specular = sqrt(k / (1 + k)) * np.exp(1j * (2 * pi * 20.0 * tick / RATE_SPS + 0.7))
        scattered = gains[:, column] - specular
        assert_mean(scattered)
        assert_mean(np.abs(scattered) ** 2, 1 / (1 + k))
        assert_drawn_from(np.abs(scattered) * sqrt(1 + k), rayleigh_cdf)


def test_taps_and_paths_fade_independently(medium: Medium) -> None:
    """Two taps of one path, told apart by an impulse; another seed; another salt."""
    taps = profile("two-tap", doppler_hz=DOPPLER_HZ, delay_spread_ns=50_000.0)
    impulse = medium.burst(np.ones(1, np.complex64))

    def heard(first_seed: int = 0, **options: Any) -> Gains:
        paths = [medium.path(taps=taps, rate_sps=RATE_SPS, seed=first_seed + n, **options) for n in range(3000)]
        return np.array([path.hear(impulse, 0, 11) for path in paths])

    own = heard()
    for other in (own[:, 10], heard(first_seed=3000)[:, 0], heard(seed_salt=1)[:, 0]):
        assert_mean(np.conj(own[:, 0]) * other)


@pytest.mark.parametrize("doppler_hz", [0.19, 10.0, 195.31, 300.0, 2000.0])
def test_lines_between_points_err_by_less_than_70_db(medium: Medium, carrier: Source, doppler_hz: float) -> None:
    """Root mean square, over a period. Every 4096th tick is a point, so 4096 times the rate gives points only; at
    195.31 Hz points are as far apart as they may be."""
    taps = profile("flat", doppler_hz=doppler_hz)
    period = int(RATE_SPS / doppler_hz)
    ticks = range(64_000, 64_000 + period, max(1, period // 500))
    lines = medium.path(taps=taps, rate_sps=RATE_SPS, seed=3)
    points = medium.path(taps=taps, rate_sps=4096 * RATE_SPS, seed=3)
    error = [lines.hear(carrier, tick, 1)[0] - points.hear(carrier, 4096 * tick, 1)[0] for tick in ticks]
    assert np.sqrt(np.mean(np.abs(error) ** 2)) < 10 ** (-70 / 20)


@pytest.mark.parametrize("tick", [0, 10**12])
def test_a_fade_goes_on_smoothly_also_after_weeks(medium: Medium, carrier: Source, tick: int) -> None:
    """Over many groups of points: no step is larger than what the Doppler shift can do in a tick.

    10^12 ticks are 116 days at this rate.
    """
    gains = medium.path(taps=RAYLEIGH, rate_sps=RATE_SPS, seed=4).hear(carrier, tick, 200_000)
    assert 0.05 < np.mean(np.abs(gains) ** 2) < 5
    turn = 2 * pi * DOPPLER_HZ / RATE_SPS
    assert np.abs(np.diff(gains)).max() < turn * sqrt(64)
    assert np.abs(np.diff(gains, 2)).max() < 16 * turn**2 * sqrt(64)


def test_without_doppler_a_fade_stands_still(medium: Medium, carrier: Source) -> None:
    path = medium.path(taps=profile("flat", doppler_hz=0.0), rate_sps=RATE_SPS, seed=5)
    gains = np.concatenate([path.hear(carrier, tick, 100) for tick in (0, 10**9)])
    assert (gains == gains[0]).all()
    assert 0 < abs(gains[0]) < 4


def test_a_static_tap_with_a_doppler_shift_is_a_tone(medium: Medium, carrier: Source) -> None:
    path = medium.path(taps=[Tap(los_doppler_hz=-120.0, phase_rad=0.3)], rate_sps=RATE_SPS)
    heard = path.hear(carrier, 5000, 4000)
    expected = np.exp(1j * (0.3 - 2 * pi * 120.0 * (5000 + np.arange(4000)) / RATE_SPS))
    assert 20 * np.log10(np.abs(heard - expected).max()) < -66


def test_a_profile_has_its_powers(medium: Medium) -> None:
    """Each tap of EVA has its table's share, over 2000 fades, seen by an impulse at 100 Msps."""
    taps = profile("eva", doppler_hz=DOPPLER_HZ)
    impulse = medium.burst(np.ones(1, np.complex64))
    power = np.array(
        [np.abs(medium.path(taps=taps, rate_sps=1e8, seed=seed).hear(impulse, 0, 256)) ** 2 for seed in range(2000)]
    )
    total = sum(10 ** (tap.power_db / 10) for tap in taps)
    for tap in taps:
        assert_mean(power[:, round(tap.delay_ns / 10)], 10 ** (tap.power_db / 10) / total)
