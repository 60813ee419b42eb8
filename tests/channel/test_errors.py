"""Error models against theory, by counts with bounds that follow from the number of frames."""

import random
from collections.abc import Callable, Iterator
from itertools import groupby, pairwise
from math import exp, sqrt
from unittest.mock import Mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from channel.errors import ERASED, ERROR_MODELS, INTACT, ErrorModel, Fate, Verdict
from channel.errors.bernoulli import Bernoulli, BernoulliOptions
from channel.errors.bursts import BurstOptions, FixedBursts
from channel.errors.exponential import ExponentialBitErrors, ExponentialOptions
from channel.errors.gilbert_elliott import GilbertElliott, GilbertElliottOptions
from channel.errors.slacp_table1 import TABLE_1
from channel.errors.uniform import UniformOnOff, UniformOptions
from common.options import NoOptions, check_ranges
from tests.harness.distributions import SIGMAS, binomial_bound, poisson_bound

MS = 1_000_000
FRAMES = 40_000


def judge_all(model: ErrorModel, frames: int, nbytes: int = 1000, duration: int = MS) -> Iterator[Verdict]:
    """Judge frames sent back to back."""
    return (model.judge(n * duration, (n + 1) * duration, nbytes) for n in range(frames))


@pytest.mark.parametrize("per", [0.0, 0.01, 0.3, 1.0])
def test_bernoulli_rate_and_independence(per: float) -> None:
    lost = [v is ERASED for v in judge_all(Bernoulli(per, random.Random(1)), FRAMES)]
    assert abs(sum(lost) - FRAMES * per) <= binomial_bound(FRAMES, per)
    pairs = sum(a and b for a, b in pairwise(lost))
    # Overlapping pairs are dependent: their variance is below three times the binomial one.
    assert abs(pairs - (FRAMES - 1) * per**2) <= sqrt(3) * binomial_bound(FRAMES - 1, per**2)


@pytest.mark.parametrize(("nbytes", "spacing"), [(1400, 65_536), (40, 4_096), (1400, 1_000)])
def test_exponential_bit_errors(nbytes: int, spacing: int) -> None:
    verdicts = list(judge_all(ExponentialBitErrors(spacing, random.Random(2)), FRAMES, nbytes))
    damaged = sum(v.fate is Fate.DAMAGED for v in verdicts)
    clean = exp(-nbytes / spacing)
    assert abs(damaged - FRAMES * (1 - clean)) <= binomial_bound(FRAMES, clean)
    errors = sum(len(v.bit_errors) for v in verdicts)
    mean = FRAMES * nbytes / spacing
    assert abs(errors - mean) <= poisson_bound(mean)


def test_exponential_bit_errors_do_not_depend_on_frame_sizes() -> None:
    def positions(nbytes: int) -> list[int]:
        model = ExponentialBitErrors(500, random.Random(5))
        verdicts = judge_all(model, 60_000 // nbytes, nbytes)
        return [n * nbytes * 8 + bit for n, v in enumerate(verdicts) for bit in v.bit_errors]

    assert positions(1000) == positions(40) == positions(1)


def test_bit_error_right_behind_a_frame_is_the_next_ones_first() -> None:
    distances = iter([8 * 100, 3, 10**9])
    rng = Mock(expovariate=lambda rate: next(distances) + 0.9)
    verdicts = list(judge_all(ExponentialBitErrors(100, rng), 3, nbytes=100))
    assert verdicts == [INTACT, Verdict(Fate.DAMAGED, (0, 4)), INTACT]


@pytest.mark.parametrize(("burst_frames", "spacing"), [(1, 65_536), (2, 65_536), (4, 65_536), (6, 65_536), (4, 10_000)])
def test_fixed_bursts_have_their_length_and_rate(burst_frames: int, spacing: int) -> None:
    nbytes = 1400
    model = FixedBursts(burst_frames, spacing, random.Random(6))
    runs = [(v, len(list(run))) for v, run in groupby(judge_all(model, FRAMES, nbytes))]
    # The last run may be cut short by the end.
    lengths = [n for v, n in runs[:-1] if v is ERASED]
    assert set(lengths) == {burst_frames}
    mean = FRAMES * nbytes / spacing
    assert abs(len(lengths) - mean) <= poisson_bound(mean)


@pytest.mark.parametrize(
    ("start", "end", "lost"),
    [(9, 10, False), (9, 11, True), (10, 11, True), (14, 15, True), (15, 16, False), (9, 16, True)],
)
def test_bad_state_includes_its_first_instant_but_not_its_end(start: int, end: int, lost: bool) -> None:
    model = UniformOnOff((10, 10), (5, 5), random.Random(0))
    assert model.judge(0, 1, 1) is INTACT
    assert (model.judge(start, end, 1) is ERASED) == lost


def test_on_off_loses_exactly_what_touches_the_bad_state() -> None:
    good, bad = (5 * MS, 20 * MS), (1 * MS, 8 * MS)
    model, twin = UniformOnOff(good, bad, random.Random(7)), random.Random(7)
    first = 12_345
    states = []
    at = first
    for _ in range(300):
        bad_at = at + twin.randint(*good)
        at = bad_at + twin.randint(*bad)
        states.append((bad_at, at))
    start, expected = first, []
    frames = random.Random(8)
    verdicts = []
    while start < states[-1][0] - 10 * MS:
        end = start + frames.randint(1, 3 * MS)
        expected.append(any(start < bad_until and end > bad_at for bad_at, bad_until in states))
        verdicts.append(model.judge(start, end, 100) is ERASED)
        start = end + frames.randint(0, 2 * MS)
    assert verdicts == expected
    assert 0 < sum(expected) < len(expected)


@pytest.mark.parametrize("name", TABLE_1)
def test_table1_models_have_the_papers_share_of_bad_time(name: str) -> None:
    model = ERROR_MODELS[name].make(NoOptions(), random.Random(9))
    assert isinstance(model, UniformOnOff)
    step, frames = 20 * MS, 60_000
    bad = sum(model.judge(n * step, n * step + 1, 1) is ERASED for n in range(frames))
    # Renewal theory: over c cycles the bad time varies with sd of bad - fraction * cycle in each.
    (g0, g1), (b0, b1) = model.good_ns, model.bad_ns
    fraction = (b0 + b1) / (g0 + g1 + b0 + b1)
    variance = ((1 - fraction) * (b1 - b0)) ** 2 / 12 + (fraction * (g1 - g0)) ** 2 / 12
    cycles = frames * step / ((g0 + g1 + b0 + b1) / 2)
    bound_ns = SIGMAS * sqrt(cycles * variance) + (g1 + b1) + SIGMAS * step * sqrt(cycles)
    assert abs(bad * step - fraction * frames * step) <= bound_ns


def test_paper_models_are_table_1() -> None:
    seconds = {name: tuple(ns / 1e9 for pair in ranges for ns in pair) for name, ranges in TABLE_1.items()}
    assert seconds == {
        "low": (10, 30, 0.06, 0.06),
        "med": (5, 15, 0.1, 0.3),
        "high": (2, 10, 0.1, 0.3),
        "vhigh": (0, 10, 0.1, 0.3),
        "huge": (0, 7, 0.1, 0.1),
    }


def test_gilbert_elliott_stationary_per() -> None:
    # Frames far apart in time see nearly independent states, so the count is nearly binomial.
    model = GilbertElliott(GilbertElliottOptions(good_ms=30, bad_ms=10, good_per=0.05, bad_per=0.6), random.Random(10))
    stationary_per = (30 * 0.05 + 10 * 0.6) / (30 + 10)
    frames, step = 20_000, 100 * MS
    lost = sum(model.judge(n * step, n * step + MS, 100) is ERASED for n in range(frames))
    assert abs(lost - frames * stationary_per) <= binomial_bound(frames, stationary_per)


def test_gilbert_elliott_starts_stationary() -> None:
    trials = 4_000
    seeds = random.Random(11)
    options = GilbertElliottOptions(good_ms=30, bad_ms=10)
    models = (GilbertElliott(options, random.Random(seeds.getrandbits(64))) for _ in range(trials))
    lost = sum(m.judge(0, 1, 1) is ERASED for m in models)
    assert abs(lost - trials * 0.25) <= binomial_bound(trials, 0.25)


def test_gilbert_elliott_bursts_have_the_length_of_the_bad_state() -> None:
    model = GilbertElliott(GilbertElliottOptions(good_ms=200, bad_ms=50), random.Random(12))
    runs = [len(list(run)) for v, run in groupby(judge_all(model, 200_000)) if v is ERASED]
    # Frames of 1 ms sample the bad state: a sojourn seen at all has a geometric number of samples.
    mean = 1 / (1 - exp(-MS / model.bad_ns))
    assert abs(sum(runs) / len(runs) - mean) <= SIGMAS * mean / sqrt(len(runs))


@given(seed=st.integers(0, 2**32), cut=st.lists(st.integers(1, 40), min_size=1, max_size=20))
@settings(max_examples=50, deadline=None)
def test_states_do_not_depend_on_the_traffic(seed: int, cut: list[int]) -> None:
    """A frame sees the same state however many frames were sent before it."""
    ends = 2_000 * MS
    for make in (
        lambda: UniformOnOff((0, 50 * MS), (0, 50 * MS), random.Random(seed)),
        lambda: GilbertElliott(GilbertElliottOptions(good_ms=50, bad_ms=50), random.Random(seed)),
    ):
        dense, sparse = make(), make()
        every = {n * MS: dense.judge(n * MS, n * MS + 1, 1) for n in range(ends // MS)}
        at, step = 0, 0
        while at < ends:
            assert sparse.judge(at, at + 1, 1) is every[at]
            at += cut[step % len(cut)] * MS
            step += 1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: BernoulliOptions(per=1.5), r"per is 1\.5"),
        (lambda: BernoulliOptions(per=float("nan")), r"per is nan"),
        (lambda: ExponentialOptions(mean_spacing_bytes=0), r"mean_spacing_bytes is 0"),
        (lambda: BurstOptions(burst_frames=0), r"burst_frames is 0"),
        (lambda: BurstOptions(burst_frames=2, mean_spacing_bytes=-1), r"mean_spacing_bytes is -1"),
        (lambda: UniformOptions(good_ms=(5, 1), bad_ms=(0, 1)), r"5 to 1 is no range"),
        (lambda: UniformOptions(good_ms=(0, 0), bad_ms=(0, 1e-9)), r"one of the states must last"),
        (lambda: GilbertElliottOptions(good_ms=1e-9, bad_ms=1), r"good_ms is 1e-09"),
        (lambda: GilbertElliottOptions(good_ms=1, bad_ms=1, bad_per=-0.1), r"bad_per is -0\.1"),
    ],
)
def test_an_option_out_of_range_is_named(make: Callable[[], object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        check_ranges(make())
