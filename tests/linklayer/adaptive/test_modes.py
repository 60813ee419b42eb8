"""The choice of a PHY's mode: over simulated sweeps, against an oracle, and what it does with strange reports."""

from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import NamedTuple, Protocol

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.units import MS
from linklayer.adaptive.mode_report import REPORT_BYTES, Fate, Heard, Sent
from linklayer.adaptive.modes import Mode, ModeChooser
from linklayer.adaptive.plan import plan_within

#: five modes with airtimes as of PHY ofdm, in ms at 1 Msps
MODES = (
    Mode("bpsk", 6.0, 1.1),
    Mode("qpsk", 9.2, 1.1),
    Mode("qam16", 16.1, 1.2),
    Mode("qam64", 22.3, 1.3),
    Mode("qam64 none", 24.5, 1.5),
)
AIRTIMES_MS = (25.8, 13.3, 7.0, 5.0, 4.5)
#: until the peer's report of a frame is there
REPORT_AFTER_MS = 30.0


def airtime(nbytes: int, mode: int) -> float:
    return AIRTIMES_MS[mode] * nbytes / 1500


def cost(loss: float) -> float:
    """Three rounds and groups of four."""
    return plan_within(loss, 0.0, 3, 4, 1e-3).cost(3, 4) / 4


def chooser() -> ModeChooser:
    return ModeChooser(MODES, airtime, cost, 0)


class Frame(NamedTuple):
    ms: float
    mode: int
    lost: bool


class Chooser(Protocol):
    def choose(self, nbytes: int, now: int) -> int: ...
    def handle_report(self, snr_db: float, now: int) -> None: ...
    def handle_fate(self, mode: int, lost: bool, now: int) -> None: ...


class Air:
    """A direction whose SNR (dB) is `snr_db(ms)`; the goodput of frames is counted by the ms of its end."""

    def __init__(
        self,
        snr_db: Callable[[float], float],
        *,
        seed: int,
        bias_db: float = 0.0,
        noise_db: float = 0.4,
        per: float = 0.0,
    ) -> None:
        self.snr_db, self.bias_db, self.noise_db, self.per = snr_db, bias_db, noise_db, per
        self.rng = Random(seed)

    def lost(self, mode: int, ms: float) -> bool:
        loss = MODES[mode].loss(self.snr_db(ms))
        return self.rng.random() < loss + (1 - loss) * self.per

    def run(self, chosen: Chooser, until_ms: float) -> list[Frame]:
        """Return the frames: when each began, its mode, and whether it was lost."""
        ms = 0.0
        frames: list[Frame] = []
        reports: list[tuple[float, float, int, bool]] = []
        while ms < until_ms:
            while reports and reports[0][0] <= ms:
                _, snr_db, mode, lost = reports.pop(0)
                now = round(ms * MS)
                if not lost:
                    chosen.handle_report(snr_db, now)
                chosen.handle_fate(mode, lost, now)
            mode = chosen.choose(1500, round(ms * MS))
            lost = self.lost(mode, ms)
            frames.append(Frame(ms, mode, lost))
            heard_db = self.snr_db(ms) + self.bias_db + self.rng.gauss(0, self.noise_db)
            ms += AIRTIMES_MS[mode]
            reports.append((ms + REPORT_AFTER_MS, heard_db, mode, lost))
        return frames


class Oracle:
    """Knows the SNR."""

    def __init__(self, snr_db: Callable[[float], float]) -> None:
        self.snr_db = snr_db

    def choose(self, nbytes: int, now: int) -> int:
        loss = [mode.loss(self.snr_db(now / MS)) for mode in MODES]
        return min(range(len(MODES)), key=lambda mode: airtime(nbytes, mode) * cost(min(loss[mode], 0.95)))

    def handle_report(self, snr_db: float, now: int) -> None:
        pass

    def handle_fate(self, mode: int, lost: bool, now: int) -> None:
        pass


def delivered(frames: list[Frame]) -> int:
    return sum(not frame.lost for frame in frames)


def sweep(ms: float) -> float:
    """From 8 to 30 dB and back in 80 s."""
    return 8 + 22 * (1 - abs(ms - 40_000) / 40_000)


@pytest.mark.slow
@pytest.mark.parametrize("bias_db", [-2.0, 0.0, 2.0])
def test_a_slow_sweep_costs_little_of_what_an_oracle_delivers(bias_db: float) -> None:
    chosen = delivered(Air(sweep, seed=1, bias_db=bias_db).run(chooser(), 80_000))
    best = delivered(Air(sweep, seed=1).run(Oracle(sweep), 80_000))
    assert chosen > 0.93 * best


def test_a_sudden_fall_is_followed_within_half_a_second() -> None:
    def fall(ms: float) -> float:
        return 28.0 if ms < 10_000 else 11.0

    frames = Air(fall, seed=2).run(chooser(), 12_000)
    assert {mode for ms, mode, _ in frames if 9_000 < ms < 10_000} == {4}
    assert {mode for ms, mode, _ in frames if ms > 10_500} <= {0, 1}
    assert sum(lost for ms, _, lost in frames if ms > 10_500) < 3


def test_a_rise_is_followed_without_probes() -> None:
    def rise(ms: float) -> float:
        return 11.0 if ms < 5_000 else 28.0

    frames = Air(rise, seed=3).run(chooser(), 6_000)
    assert {mode for ms, mode, _ in frames if ms > 5_500} == {4}
    # nothing was lost to find that out
    assert not any(lost for ms, mode, lost in frames if 4_000 < ms < 6_000 and mode > 1)


def test_losses_that_no_mode_mends_do_not_make_it_step_down() -> None:
    frames = Air(lambda ms: 30.0, seed=4, per=0.2).run(chooser(), 30_000)
    late = [mode for ms, mode, _ in frames if ms > 10_000]
    assert late.count(4) > 0.95 * len(late)


def test_without_a_report_the_sturdiest_mode_goes() -> None:
    chosen = chooser()
    assert chosen.choose(1500, 0) == 0
    assert chosen.snr_db(0) is None
    # an even chance for the sturdiest, hardly one for the others
    assert chosen.loss(0, 0) == 0.5
    assert all(chosen.loss(mode, 0) > 0.9 for mode in range(1, len(MODES)))
    chosen.handle_fate(0, True, 0)
    assert chosen.choose(1500, 10_000 * MS) == 0


def test_when_reports_end_it_steps_down_by_and_by() -> None:
    chosen = chooser()
    for at in range(100):
        chosen.handle_report(30.0, at * 10 * MS)
    modes = [chosen.choose(1500, (1000 + at) * MS) for at in range(0, 3000, 100)]
    assert modes[0] == 4
    assert modes[-1] == 0
    assert all(after <= before for before, after in pairwise(modes))


def test_short_frames_go_sturdier() -> None:
    def costly(nbytes: int, mode: int) -> float:
        return 1.0 + airtime(nbytes, mode)

    chosen = ModeChooser(MODES, costly, cost, 0)
    for at in range(100):
        chosen.handle_report(25.0, at * 10 * MS)
    assert chosen.choose(30, 1000 * MS) < chosen.choose(1500, 1000 * MS)


def test_there_must_be_modes() -> None:
    with pytest.raises(ValueError, match="no modes"):
        ModeChooser((), airtime, cost, 0)


@given(st.floats(-20, 43.75), st.lists(st.booleans(), max_size=200), st.randoms(use_true_random=False))
def test_any_history_gives_a_mode_and_more_snr_no_sturdier_one(
    snr_db: float, fates: list[bool], random: Random
) -> None:
    lower, higher = chooser(), chooser()
    for at, lost in enumerate(fates):
        mode = random.randrange(len(MODES))
        for each, extra in ((lower, 0.0), (higher, 3.0)):
            each.handle_report(snr_db + extra, at * MS)
            each.handle_fate(mode, lost, at * MS)
            assert 0 <= each.choose(1500, at * MS) < len(MODES)
            assert 0 <= each.loss(mode, at * MS) <= 1
    if not fates:
        lower.handle_report(snr_db, 0)
        higher.handle_report(snr_db + 3.0, 0)
        assert lower.choose(1500, 0) <= higher.choose(1500, 0)


# -- reports ----------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=32))
def test_a_report_tells_the_fates_of_the_frames_before_it(frames: list[tuple[int, bool]]) -> None:
    heard, sent = Heard(), Sent()
    for number, (mode, lost) in enumerate(frames):
        sent.handle_frame(mode)
        if not lost:
            heard.handle_frame(number, 12.3)
    snr_db, fates = sent.handle_report(heard.report())
    newest = max((number for number, (_, lost) in enumerate(frames) if not lost), default=-1)
    assert fates == [Fate(*frame) for frame in frames[: newest + 1]]
    assert snr_db == (12.25 if newest >= 0 else None)
    # told once
    assert sent.handle_report(heard.report())[1] == []


def test_numbers_wrap_and_begin_anew() -> None:
    heard, sent = Heard(), Sent()
    for number in range(70_000):
        sent.handle_frame(number % 3)
        if number % 2 == 0:
            heard.handle_frame(number, None)
        if number % 16 == 15:
            snr_db, fates = sent.handle_report(heard.report())
            assert snr_db is None
            first = number - 15 if number == 15 else number - 16
            assert fates == [Fate(at % 3, at % 2 == 1) for at in range(first, number)]
    heard.handle_frame(0, 1.0)
    assert heard.report() == bytes([85, 0, 0, 0, 0, 0, 0])


@given(st.sets(st.integers(1, 40), min_size=1), st.randoms(use_true_random=False))
def test_a_frame_that_is_heard_twice_is_told_once(numbers: set[int], random: Random) -> None:
    once, twice = Heard(), Heard()
    for number in sorted(numbers):
        for heard in (once, twice, *((twice,) if random.random() < 0.5 else ())):
            heard.handle_frame(number, 5.0)
    assert twice.report() == once.report()


def test_what_is_too_far_back_for_the_bitmap_is_not_told() -> None:
    heard, sent = Heard(), Sent()
    for number in range(50):
        sent.handle_frame(1)
        if number in (0, 49):
            heard.handle_frame(number, 5.0)
    _, fates = sent.handle_report(heard.report())
    assert fates == [Fate(1, True)] * 32 + [Fate(1, False)]


@given(st.binary(min_size=REPORT_BYTES, max_size=REPORT_BYTES), st.integers(0, 100))
def test_no_report_does_harm(octets: bytes, count: int) -> None:
    sent = Sent()
    for _ in range(count):
        sent.handle_frame(0)
    snr_db, fates = sent.handle_report(octets)
    assert len(fates) <= min(count, 33)
    assert snr_db is None or -20 <= snr_db <= 43.5
