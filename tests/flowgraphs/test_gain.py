"""The gain control, in invented time and on an invented radio."""

from flowgraphs.gain import CLIP_DBFS, SEARCH_NS, SETTLE_NS, STEP_DB, TARGET_DBFS, WEAK_DBFS, GainControl

SECOND_NS = 1_000_000_000


def control(gain_db: float = 30.0) -> GainControl:
    return GainControl(gain_db, 0.0, 60.0)


def test_a_level_in_range_leaves_the_gain() -> None:
    gain = control()
    for now in range(0, 10 * SECOND_NS, SETTLE_NS):
        assert gain.handle_frame(WEAK_DBFS, now) is None
        assert gain.handle_peak(CLIP_DBFS, now) is None


def test_clipping_lowers_it_until_it_stops_or_the_range_ends() -> None:
    gain = control()
    assert STEP_DB == 10
    for now, expected in enumerate((20.0, 10.0, 0.0, None, None)):
        assert gain.handle_peak(0.0, SECOND_NS + now * SETTLE_NS) == expected
        # each change is given time to show
        assert gain.handle_peak(0.0, SECOND_NS + (now + 1) * SETTLE_NS - 1) is None


def test_a_weak_frame_is_brought_to_the_target_at_once() -> None:
    gain = control()
    assert gain.handle_frame(-46.0, SECOND_NS) == 30.0 + TARGET_DBFS + 46.0
    # as far as the amplifier goes
    assert gain.handle_frame(-90.0, 2 * SECOND_NS) == 60.0


def test_without_frames_all_gains_are_tried() -> None:
    gain = control(25.0)
    tried: list[float] = []
    now = 0
    while len(tried) < 8:
        now += SETTLE_NS
        new = gain.handle_peak(-70.0, now)
        if new is not None:
            tried.append(new)
    assert tried == [15.0, 5.0, 60.0, 50.0, 40.0, 30.0, 20.0, 10.0]
    assert now == 8 * SEARCH_NS


def test_a_frame_ends_the_search() -> None:
    gain = control()
    assert gain.handle_peak(-70.0, SEARCH_NS) == 20.0
    gain.handle_frame(-30.0, SEARCH_NS + 1)
    assert gain.handle_peak(-70.0, 2 * SEARCH_NS) is None
    assert gain.handle_peak(-70.0, 2 * SEARCH_NS + 1) == 10.0


def test_a_closed_loop_settles_between_clipping_and_weakness() -> None:
    """A radio whose full scale is at -10 dBm - gain, as a virtual USRP's, at every signal level there may be."""
    for signal_dbm in range(-100, -10, 3):
        gain = control()
        changes = 0
        for now in range(0, 20 * SECOND_NS, SETTLE_NS):
            level_dbfs = signal_dbm + 10 + gain.gain_db
            # an OFDM frame peaks some 10 dB above its mean; what clips is not decoded
            new = gain.handle_peak(min(level_dbfs + 10, 0.0), now)
            if new is None and level_dbfs < -6:
                new = gain.handle_frame(level_dbfs, now)
            changes += new is not None
        assert WEAK_DBFS <= signal_dbm + 10 + gain.gain_db < CLIP_DBFS, signal_dbm
        assert changes <= 4, signal_dbm
