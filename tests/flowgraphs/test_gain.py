"""The gain control, in invented time on a model of a receiver."""

import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from flowgraphs.gain import (
    CLIP_DBFS,
    HIGH_DBFS,
    HOLD_NS,
    LOW_DBFS,
    PEAK_DBFS,
    SEARCH_NS,
    STEP_DB,
    TARGET_DBFS,
    GainControl,
)

SECOND_NS = 1_000_000_000
PEAK_NS = 50_000_000
FRAME_NS = 20_000_000
#: peak of an OFDM frame over its mean
CREST_DB = 10.0
#: SNR at which frames are decoded
DECODED_DB = 6.0


@dataclass
class Model:
    """A receiver whose converter is full at -10 dBm - gain, in a noise of `noise_dbm`, quantised at `floor_dbfs`.

    A blocker outside the sampled band fills the converter unseen at gains above `blocked_db`. A share `faded` of the
    frames is lost, and `hit` more where the own transmitter's bursts fill the converter, at gains above `burst_db`.
    """

    signal_dbm: Callable[[float], float] | float
    gain_db: float = 30.0
    maximum_db: float = 60.0
    noise_dbm: float = -104.0
    floor_dbfs: float = -85.0
    blocked_db: float = math.inf
    faded: float = 0.0
    hit: float = 0.0
    burst_db: float = math.inf
    #: level of others' bursts in the band at a time (s); -inf: none
    foreign_dbm: Callable[[float], float] = lambda _: -math.inf
    changes: list[tuple[float, float]] = field(default_factory=list)
    heard: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.control = GainControl(self.gain_db, 0.0, self.maximum_db)
        self.now = 0
        self.rng = random.Random(5)

    @property
    def level_dbfs(self) -> float:
        signal = self.signal_dbm
        return (signal if isinstance(signal, float) else signal(self.now / 1e9)) + 10 + self.control.gain_db

    @property
    def snr_db(self) -> float:
        noise_dbfs = self.noise_dbm + 10 + self.control.gain_db
        floor = 10 ** (noise_dbfs / 10) + 10 ** (self.floor_dbfs / 10)
        snr_db = self.level_dbfs - 10 * math.log10(floor)
        overload_db = max(self.level_dbfs + CREST_DB, self.control.gain_db - self.blocked_db, 0.0)
        return min(snr_db, snr_db - 2 * overload_db if overload_db else snr_db)

    def run(self, seconds: float) -> "Model":
        for now in range(self.now + FRAME_NS // 2, self.now + int(seconds * SECOND_NS), FRAME_NS // 2):
            self.now = now
            foreign_dbfs = self.foreign_dbm(now / 1e9) + 10 + self.control.gain_db
            new = None
            if now % PEAK_NS == 0:
                peak_dbfs = max(self.level_dbfs + CREST_DB, foreign_dbfs, self.noise_dbm + 20 + self.control.gain_db)
                new = self.control.handle_peak(min(peak_dbfs, 0.0), now)
            elif now % FRAME_NS == 0 and self.snr_db > DECODED_DB and foreign_dbfs < self.level_dbfs:
                self.heard.append(now / 1e9)
                share = self.faded + (self.hit if self.control.gain_db > self.burst_db else 0.0)
                # one in three is not even heard
                damaged, missed = self.rng.random() < share * 2 / 3, self.rng.random() < share / 3
                new = self.control.handle_frame(self.level_dbfs, self.snr_db, now, damaged=damaged, missed=missed)
            if new is not None:
                assert new == self.control.gain_db
                assert 0 <= new <= self.maximum_db
                self.changes.append((now / 1e9, new))
        return self


@pytest.mark.parametrize("gain_db", [0.0, 30.0, 60.0])
def test_frames_of_every_level_are_brought_into_the_range_and_left_there(gain_db: float) -> None:
    for signal_dbm in range(-95, -20, 5):
        model = Model(float(signal_dbm), gain_db).run(30)
        assert model.level_dbfs <= HIGH_DBFS, signal_dbm
        assert model.level_dbfs >= LOW_DBFS or model.control.gain_db == model.maximum_db, signal_dbm
        assert model.heard[0] < 15, signal_dbm
        settled = len(model.changes)
        assert settled <= 12, model.changes
        model.run(120)
        assert len(model.changes) == settled, model.changes


def test_target_lies_between_20_and_15_below_full_scale() -> None:
    assert -20 <= TARGET_DBFS <= -15
    model = Model(-70.0, 10.0).run(30)
    assert model.level_dbfs == pytest.approx(TARGET_DBFS)


def test_fading_is_not_followed() -> None:
    rng = random.Random(7)
    power = [rng.expovariate(1) for _ in range(100_000)]
    model = Model(lambda at_s: -60 + 10 * math.log10(power[int(at_s / 0.05)])).run(60)
    late = [change for change in model.changes if change[0] > 10]
    assert len(late) <= 3, model.changes
    # of 2400
    assert len(model.heard) > 2350


def test_loud_frame_lowers_the_gain_at_once() -> None:
    model = Model(-60.0).run(20)
    model.signal_dbm = -40.0
    lowered_at = model.now / 1e9
    model.run(1)
    assert model.changes[-1][0] - lowered_at < 0.2
    assert LOW_DBFS <= model.level_dbfs <= HIGH_DBFS


def test_clipping_without_frames_lowers_the_gain_step_by_step() -> None:
    gain = GainControl(30.0, 0.0, 60.0)
    given = [gain.handle_peak(0.0, SECOND_NS + 2 * number * PEAK_NS) for number in range(5)]
    assert given == [20.0, 10.0, 0.0, None, None]
    assert STEP_DB == 10


def test_single_burst_of_another_does_not_lower_the_gain_while_frames_are_heard() -> None:
    model = Model(-60.0).run(20)
    before_db, changes = model.control.gain_db, len(model.changes)
    model.foreign_dbm = lambda at_s: 0.0 if at_s % 5 < 0.1 else -math.inf
    model.run(60)
    assert (model.control.gain_db, len(model.changes)) == (before_db, changes)


def test_gain_recovers_from_bursts_of_others() -> None:
    model = Model(-60.0).run(20)
    before_db = model.control.gain_db
    model.foreign_dbm = lambda at_s: -15.0 if at_s % 2 < 0.5 else -math.inf
    model.run(20)
    assert model.control.gain_db < before_db - 5
    under_fire = len(model.changes)
    model.foreign_dbm = lambda _: -math.inf
    model.run(90)
    assert LOW_DBFS <= model.level_dbfs <= HIGH_DBFS
    # it was tried ever less often, and found at once when it was quiet
    assert len(model.changes) - under_fire <= 2
    assert under_fire <= 12


@pytest.mark.parametrize("gain_db", [10.0, 30.0, 60.0])
def test_blocker_before_the_filter_is_found_by_the_snr(gain_db: float) -> None:
    # the wanted level would take a gain of 62.5 dB; above 35 the converter is full, which no peak shows
    model = Model(-90.0, gain_db, noise_dbm=-110.0, blocked_db=35.0).run(60)
    assert model.control.gain_db <= 35 + 2
    best_db = model.snr_db
    model.run(300)
    # now and then it looks whether the blocker is gone
    assert model.snr_db >= best_db - 1.5
    assert len(model.changes) < 40
    model.blocked_db = math.inf
    model.run(120)
    assert model.control.gain_db == pytest.approx(60.0)


def time_above(model: Model, gain_db: float, since_s: float) -> float:
    """Return for how long (s) the gain was above another one."""
    spans = itertools.pairwise([*model.changes, (model.now / 1e9, 0.0)])
    return sum(max(end - max(at, since_s), 0) for (at, gain), (end, _) in spans if gain > gain_db)


@pytest.mark.parametrize("hit", [0.15, 0.3, 0.9])
@pytest.mark.parametrize("burst_db", [50.0, 56.0])
def test_bursts_of_the_own_transmitter_are_found_by_lost_frames(hit: float, burst_db: float) -> None:
    """They leave the other frames, and so the mean SNR, as they were."""
    model = Model(-89.0, 60.0, faded=0.08, hit=hit, burst_db=burst_db).run(120)
    assert time_above(model, burst_db, 0) < 20
    assert time_above(model, burst_db, 60) < 6
    model.burst_db = math.inf
    model.run(200)
    assert model.control.gain_db == 60.0


@pytest.mark.parametrize("faded", [0.08, 0.2, 0.6])
def test_gain_stays_where_frames_are_lost_by_the_channel(faded: float) -> None:
    model = Model(-89.0, 60.0, faded=faded).run(300)
    assert time_above(model, 59.0, 0) > 0.8 * 300


def test_a_few_frames_prove_nothing() -> None:
    """Stations that look for each other send about once a second."""
    gain = GainControl(60.0, 0.0, 60.0)
    for second in range(1, 13):
        gain.handle_frame(-20.0, 15.0, second * SECOND_NS, damaged=second % 4 == 0 and second < 5)
    assert gain.gain_db == 60.0


def test_weak_signal_is_found_within_the_readiness_of_a_run() -> None:
    # what is heard decides nothing before the gain is high enough; a blocker hides that it is too high
    for blocked_db in (math.inf, 40.0, 25.0):
        model = Model(-85.0, 60.0 if blocked_db < 60 else 0.0, floor_dbfs=-70.0, blocked_db=blocked_db).run(30)
        assert model.heard, blocked_db
        assert model.heard[0] < 15, blocked_db


def test_silence_is_searched_by_its_peak_and_then_downwards() -> None:
    gain = GainControl(25.0, 0.0, 60.0)
    tried: list[float] = []
    now = 0
    while len(tried) < 9:
        now += PEAK_NS
        new = gain.handle_peak(-70.0 + gain.gain_db, now)
        if new is not None:
            tried.append(new)
    assert tried == [60.0, 50.0, 40.0, 30.0, 20.0, 10.0, 0.0, 60.0, 50.0]
    assert now <= 9 * (SEARCH_NS + 2 * PEAK_NS)
    assert gain.handle_peak(-70.0, now + SEARCH_NS - PEAK_NS) is None


def test_loud_silence_is_brought_to_the_wanted_peak() -> None:
    gain = GainControl(25.0, 0.0, 60.0)
    for now in range(0, SEARCH_NS, PEAK_NS):
        assert gain.handle_peak(-28.0, now) is None
    assert gain.handle_peak(-40.0, SEARCH_NS) == 25.0 + PEAK_DBFS + 28.0


def test_frame_ends_the_search() -> None:
    gain = GainControl(60.0, 0.0, 60.0)
    assert gain.handle_peak(-70.0, SEARCH_NS) == 50.0
    gain.handle_frame(-20.0, 15.0, SEARCH_NS + 1)
    assert gain.handle_peak(-70.0, 2 * SEARCH_NS) is None
    assert gain.handle_peak(-70.0, 2 * SEARCH_NS + 1) == 60.0


def test_phy_without_snr_is_controlled_by_level_alone() -> None:
    gain = GainControl(30.0, 0.0, 60.0)
    times = range(SECOND_NS, 5 * SECOND_NS, FRAME_NS)
    given = [gain.handle_frame(-30.0 + gain.gain_db - 30.0, None, now) for now in times]
    assert [new for new in given if new is not None] == [30.0 + TARGET_DBFS + 30.0]
    assert CLIP_DBFS < 0 < HOLD_NS
