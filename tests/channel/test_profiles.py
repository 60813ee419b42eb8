"""Power delay profiles: the published numbers, by properties their tables state, and what is refused."""

from math import sqrt
from typing import Any

import pytest

from channel.delay_profiles import NAMES, Kind, Tap, profile

SCALED = ("two-tap", "tdl-a", "tdl-b", "tdl-c", "tdl-d", "tdl-e")


def taps_of(name: str, **more: Any) -> tuple[Tap, ...]:
    if name in SCALED:
        more.setdefault("delay_spread_ns", 100.0)
    if name == "rician":
        more.setdefault("k_db", 6.0)
    return profile(name, doppler_hz=10.0, **more)


def rms_delay_spread_ns(taps: tuple[Tap, ...]) -> float:
    powers = [10 ** (tap.power_db / 10) for tap in taps]
    mean_ns = sum(p * tap.delay_ns for p, tap in zip(powers, taps, strict=True)) / sum(powers)
    variance = sum(p * (tap.delay_ns - mean_ns) ** 2 for p, tap in zip(powers, taps, strict=True)) / sum(powers)
    return sqrt(variance)


@pytest.mark.parametrize(
    ("name", "n_taps", "last_ns", "delays_ns", "powers_db"),
    [
        *(("epa", 7, 410, 900, -52.0), ("eva", 9, 2510, 6900, -52.1), ("etu", 9, 5000, 10_000, -18.0)),
        *(("tdl-a", 23, 965.86, 5814.74, -282.9), ("tdl-b", 23, 478.34, 3419.99, -153.8)),
        *(("tdl-c", 24, 865.23, 6204.02, -229.8), ("tdl-d", 13, 1252.5, 5322.6, -279.3)),
        *(("tdl-e", 14, 2065.19, 5313.68, -288.1), ("two-tap", 2, 200, 200, 0.0)),
        *(("flat", 1, 0, 0, 0), ("rician", 1, 0, 0, 0)),
    ],
)
def test_tables_have_their_taps_and_their_columns_add_up(
    name: str, n_taps: int, last_ns: float, delays_ns: float, powers_db: float
) -> None:
    taps = taps_of(name)
    assert len(taps) == n_taps
    delays = [tap.delay_ns for tap in taps]
    assert min(delays) == 0
    assert max(delays) == pytest.approx(last_ns, abs=1e-9)
    assert (sum(delays), sum(tap.power_db for tap in taps)) == pytest.approx((delays_ns, powers_db), abs=1e-6)


@pytest.mark.parametrize(
    ("name", "spread_ns", "within_ns"),
    [
        *((name, 100.0, 0.01) for name in ("two-tap", "tdl-a", "tdl-b", "tdl-c", "tdl-e")),
        # normalised as coarsely as its table
        ("tdl-d", 100.0, 1.0),
        # as 36.101 states them
        *(("eva", 357.0, 0.5), ("etu", 991.0, 0.5)),
    ],
)
def test_tables_have_their_delay_spread(name: str, spread_ns: float, within_ns: float) -> None:
    """A single wrong digit in a strong tap shows: most tables are normalised to 1e-4."""
    assert rms_delay_spread_ns(taps_of(name)) == pytest.approx(spread_ns, abs=within_ns)


@pytest.mark.parametrize(
    ("name", "k_db", "los_db", "scattered_db"), [("tdl-d", 13.3, -0.2, -13.5), ("tdl-e", 22.0, -0.03, -22.03)]
)
def test_the_first_tap_of_d_and_e_is_rician(name: str, k_db: float, los_db: float, scattered_db: float) -> None:
    """The tables give line of sight and scattered power apart, and K and mean power in a note; both must agree."""
    first, *others = taps_of(name)
    assert (first.kind, first.k_db, first.power_db) == (Kind.RICIAN, k_db, 0.0)
    k = 10 ** (first.k_db / 10)
    total = 10 ** (first.power_db / 10)
    assert 10 ** (los_db / 10) == pytest.approx(total * k / (1 + k), rel=10**0.005 - 1)
    assert 10 ** (scattered_db / 10) == pytest.approx(total / (1 + k), rel=10**0.005 - 1)
    assert first.los_doppler_hz == pytest.approx(7.0)
    assert {tap.kind for tap in others} == {Kind.RAYLEIGH}


@pytest.mark.parametrize("name", NAMES)
def test_every_tap_has_the_doppler_asked_for(name: str) -> None:
    assert {tap.doppler_hz for tap in taps_of(name)} == {10.0}


def test_names_are_not_case_sensitive() -> None:
    assert taps_of("EVA") == taps_of("eva")


def test_rician_is_one_tap_with_a_static_line_of_sight() -> None:
    (tap,) = taps_of("rician", k_db=3.0)
    assert (tap.kind, tap.k_db, tap.los_doppler_hz) == (Kind.RICIAN, 3.0, 0.0)


@pytest.mark.parametrize(
    ("name", "numbers", "message"),
    [
        ("tdl-x", {"doppler_hz": 1.0}, "there is no profile 'tdl-x'; known are flat, rician, two-tap, epa"),
        ("tdl-a", {"doppler_hz": 1.0}, "profile tdl-a needs delay_spread_ns"),
        ("epa", {"doppler_hz": 1.0, "delay_spread_ns": 10.0}, "profile epa takes no delay_spread_ns"),
        ("rician", {"doppler_hz": 1.0}, "profile rician needs k_db"),
        ("tdl-d", {"doppler_hz": 1.0, "delay_spread_ns": 10.0, "k_db": 3.0}, "profile tdl-d takes no k_db"),
        ("rician", {"doppler_hz": 1.0, "k_db": float("nan")}, "k_db is nan"),
        ("flat", {"doppler_hz": -1.0}, "doppler_hz is -1.0; it must be 0 or more"),
        ("flat", {"doppler_hz": float("inf")}, "doppler_hz is inf"),
        ("tdl-a", {"doppler_hz": 1.0, "delay_spread_ns": -5.0}, "delay_spread_ns is -5.0"),
    ],
)
def test_what_is_refused(name: str, numbers: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        profile(name, **numbers)
