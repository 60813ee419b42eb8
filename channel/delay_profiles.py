"""Power delay profiles: published tapped delay lines by name.

Read first: 3GPP TS 36.104 annex B.2 (EPA, EVA, ETU); TR 38.901 section 7.7.2 (TDL-A ... TDL-E) and 7.7.3 (their
delays are multiples of a delay spread).

Powers are those of the tables and add up to more than one; an air normalises them. Left out: the K-factor scaling of
TR 38.901 section 7.7.6, spatial correlation, and the simplified profiles of TS 38.101-4.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import IntEnum
from math import isfinite
from typing import Final


class Kind(IntEnum):
    """How the gain of a tap varies; the numbers are those of the air's shared memory."""

    STATIC = 0
    RAYLEIGH = 1
    RICIAN = 2


@dataclass(frozen=True, slots=True)
class Tap:
    """One tap of a tapped delay line; scattered power has the classical Doppler spectrum (Clarke, Jakes)."""

    delay_ns: float = 0.0
    #: mean power, line of sight included
    power_db: float = 0.0
    kind: Kind = Kind.STATIC
    #: Rician: line of sight over scattered power
    k_db: float = 0.0
    #: largest Doppler shift of the scattered power
    doppler_hz: float = 0.0
    #: static, Rician: Doppler shift and first phase of the line of sight
    los_doppler_hz: float = 0.0
    phase_rad: float = 0.0


#: TR 38.901 section 7.7.2: in TDL-D and TDL-E the line of sight is shifted by this much of the largest shift.
LOS_DOPPLER: Final = 0.7

_EPA: Final = ((0, 0.0), (30, -1.0), (70, -2.0), (90, -3.0), (110, -8.0), (190, -17.2), (410, -20.8))
_EVA: Final = (
    *((0, 0.0), (30, -1.5), (150, -1.4), (310, -3.6), (370, -0.6)),
    *((710, -9.1), (1090, -7.0), (1730, -12.0), (2510, -16.9)),
)
_ETU: Final = (
    *((0, -1.0), (50, -1.0), (120, -1.0), (200, 0.0), (230, 0.0)),
    *((500, 0.0), (1600, -3.0), (2300, -5.0), (5000, -7.0)),
)
_TDL_A: Final = (
    *((0.0000, -13.4), (0.3819, 0.0), (0.4025, -2.2), (0.5868, -4.0), (0.4610, -6.0), (0.5375, -8.2)),
    *((0.6708, -9.9), (0.5750, -10.5), (0.7618, -7.5), (1.5375, -15.9), (1.8978, -6.6), (2.2242, -16.7)),
    *((2.1718, -12.4), (2.4942, -15.2), (2.5119, -10.8), (3.0582, -11.3), (4.0810, -12.7), (4.4579, -16.2)),
    *((4.5695, -18.3), (4.7966, -18.9), (5.0066, -16.6), (5.3043, -19.9), (9.6586, -29.7)),
)
_TDL_B: Final = (
    *((0.0000, 0.0), (0.1072, -2.2), (0.2155, -4.0), (0.2095, -3.2), (0.2870, -9.8), (0.2986, -1.2)),
    *((0.3752, -3.4), (0.5055, -5.2), (0.3681, -7.6), (0.3697, -3.0), (0.5700, -8.9), (0.5283, -9.0)),
    *((1.1021, -4.8), (1.2756, -5.7), (1.5474, -7.5), (1.7842, -1.9), (2.0169, -7.6), (2.8294, -12.2)),
    *((3.0219, -9.8), (3.6187, -11.4), (4.1067, -14.9), (4.2790, -9.2), (4.7834, -11.3)),
)
_TDL_C: Final = (
    *((0.0000, -4.4), (0.2099, -1.2), (0.2219, -3.5), (0.2329, -5.2), (0.2176, -2.5), (0.6366, 0.0)),
    *((0.6448, -2.2), (0.6560, -3.9), (0.6584, -7.4), (0.7935, -7.1), (0.8213, -10.7), (0.9336, -11.1)),
    *((1.2285, -5.1), (1.3083, -6.8), (2.1704, -8.7), (2.7105, -13.2), (4.2589, -13.9), (4.6003, -13.9)),
    *((5.4902, -15.8), (5.6077, -17.1), (6.3065, -16.0), (6.6374, -15.7), (7.0427, -21.6), (8.6523, -22.8)),
)
# The first tap of these two is Rician: mean power 0 dB, and the K-factor the tables' notes give.
_TDL_D_K_DB: Final = 13.3
_TDL_D: Final = (
    *((0.000, 0.0), (0.035, -18.8), (0.612, -21.0), (1.363, -22.8), (1.405, -17.9), (1.804, -20.1)),
    *((2.596, -21.9), (1.775, -22.9), (4.042, -27.8), (7.937, -23.6), (9.424, -24.8), (9.708, -30.0)),
    *((12.525, -27.7),),
)
_TDL_E_K_DB: Final = 22.0
_TDL_E: Final = (
    *((0.0000, 0.0), (0.5133, -15.8), (0.5440, -18.1), (0.5630, -19.8), (0.5440, -22.9), (0.7112, -22.4)),
    *((1.9092, -18.6), (1.9293, -20.8), (1.9589, -22.6), (2.6426, -22.3), (3.7136, -25.6), (5.4524, -20.2)),
    *((12.0034, -29.8), (20.6519, -29.2)),
)
# Two taps of one power, their delay spread 1.
_TWO_TAP: Final = ((0.0, 0.0), (2.0, 0.0))


@dataclass(frozen=True, slots=True)
class _Profile:
    #: delay in ns, or in delay spreads when `scaled`, and power in dB
    taps: tuple[tuple[float, float], ...]
    scaled: bool = False
    #: K-factor of the first tap, when it is Rician
    k_db: float | None = None
    #: the caller gives the K-factor
    free_k: bool = False
    los_doppler: float = 0.0


_PROFILES: Final = {
    "flat": _Profile(((0.0, 0.0),)),
    "rician": _Profile(((0.0, 0.0),), free_k=True),
    "two-tap": _Profile(_TWO_TAP, scaled=True),
    "epa": _Profile(_EPA),
    "eva": _Profile(_EVA),
    "etu": _Profile(_ETU),
    "tdl-a": _Profile(_TDL_A, scaled=True),
    "tdl-b": _Profile(_TDL_B, scaled=True),
    "tdl-c": _Profile(_TDL_C, scaled=True),
    "tdl-d": _Profile(_TDL_D, scaled=True, k_db=_TDL_D_K_DB, los_doppler=LOS_DOPPLER),
    "tdl-e": _Profile(_TDL_E, scaled=True, k_db=_TDL_E_K_DB, los_doppler=LOS_DOPPLER),
}

#: the names that `profile` takes
NAMES: Final = tuple(_PROFILES)


def profile(
    name: str, *, doppler_hz: float, delay_spread_ns: float | None = None, k_db: float | None = None
) -> tuple[Tap, ...]:
    """Return the taps of a named profile, in the order of its table; upper and lower case are the same.

    `doppler_hz` is the largest Doppler shift. `delay_spread_ns`, the root mean square one, is needed by `two-tap`
    (two Rayleigh taps of one power) and the TDL profiles, and refused by those whose delays are fixed. `k_db` is
    needed by `rician` (one tap, whose line of sight has no Doppler shift: a fixed link among moving scatterers) and
    refused by all others. `flat` is one Rayleigh tap.

    Raises ValueError for an unknown name, and for a number that is missing, superfluous or out of range.
    """
    found = _PROFILES.get(name.lower())
    if found is None:
        raise ValueError(f"there is no profile {name!r}; known are {', '.join(NAMES)}.")
    if not (isfinite(doppler_hz) and doppler_hz >= 0):
        raise ValueError(f"doppler_hz is {doppler_hz}; it must be 0 or more.")
    spread_ns = _given(name, "delay_spread_ns", delay_spread_ns, found.scaled, lambda ns: ns >= 0, "0 or more")
    own_k_db = _given(name, "k_db", k_db, found.free_k, lambda _: True, "finite")
    delay_unit_ns = 1.0 if spread_ns is None else spread_ns
    taps = [
        Tap(delay_ns=delay * delay_unit_ns, power_db=power_db, kind=Kind.RAYLEIGH, doppler_hz=doppler_hz)
        for delay, power_db in found.taps
    ]
    first_k_db = own_k_db if found.free_k else found.k_db
    if first_k_db is not None:
        los_doppler_hz = found.los_doppler * doppler_hz
        taps[0] = replace(taps[0], kind=Kind.RICIAN, k_db=first_k_db, los_doppler_hz=los_doppler_hz)
    return tuple(taps)


def _given(
    profile_name: str, what: str, value: float | None, wanted: bool, allowed: Callable[[float], bool], range_: str
) -> float | None:
    if wanted and value is None:
        raise ValueError(f"profile {profile_name} needs {what}.")
    if value is None:
        return None
    if not wanted:
        raise ValueError(f"profile {profile_name} takes no {what}: its table fixes it.")
    if not (isfinite(value) and allowed(value)):
        raise ValueError(f"{what} is {value}; it must be {range_}.")
    return value
