"""Gain control of a receiver: slow, from levels of frames and peaks, not an AGC loop over samples.

Rules kept
- A core (no clock, no radio: `now` comes in, a gain comes out).
- A change of gain distorts the frame on the air, so the gain stays while the loudest frames of a second are between
  LOW_DBFS and HIGH_DBFS. Beyond, it brings them to TARGET_DBFS: down at once, up by the loudest frame of a second, so
  that fading is not followed.
- Peaks are those of the sampled band. A transmitter beside it may fill the converter unseen: all the time, or with
  bursts, as the own one does, which damage the frames that they meet and leave the others as they were. So another
  gain is compared with the one before: by the share of the frames that are lost (damaged or missed) where the two
  differ by more than MORE_LOST and by two standard errors, else by the mean SNR.
- More gain goes back where it is worse. Once settled, less gain is tried, again and in larger steps where a share of
  LOSSY is lost, and kept while it is better.
- A gain is known by its last KNOWN windows; less gain that is tried, by one; more gain, by up to TRIAL, until a
  difference shows.
- Bursts of others that clip for long lower the gain, for a time that doubles as they come again.
- Without frames, peaks are brought to PEAK_DBFS; then lower gains are tried, one after the other.

Left out: the balance of several amplifier stages; UHD distributes one gain over them. Own bursts that damage as many
frames with STEP_DB less: there a fixed gain helps.
"""

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import fmean

#: a peak above this is clipping
CLIP_DBFS = -1.0
#: levels of frames (mean over a frame): wanted, and the range within which nothing changes. An OFDM frame peaks some
#: 10 dB above its mean
TARGET_DBFS = -17.5
LOW_DBFS, HIGH_DBFS = -25.0, -12.0
#: wanted peak of whatever is on the air, while no frame is heard
PEAK_DBFS = -8.0
STEP_DB = 10.0
#: step of the search for a better SNR, and the difference of two means of SNR that counts
PROBE_DB = 6.0
WORSE_DB = 1.5
#: the difference of two shares of lost frames that counts: a second of fading makes smaller ones
MORE_LOST = 0.1
#: share of lost frames from which on less gain is tried again, so long after it has been tried; twice as long each time
#: that it was not better
LOSSY, AGAIN_NS = 0.1, 3_000_000_000
#: windows, see above
KNOWN, TRIAL = 5, 3
#: frames and peaks of this time after a change are mixtures of both gains
SETTLE_NS = 75_000_000
#: time over which frames are judged, and the fewest of them
WINDOW_NS = 1_000_000_000
FRAMES = 4
#: time without a frame after which the gain is searched, and for each gain: stations that look for each other send
#: about once a second
SEARCH_NS = 1_500_000_000
#: so many peaks in a row clip, though frames are heard
FOREIGN_PEAKS = 4
#: for so long the gain stays below one that clipped or cost SNR
HOLD_NS, LONGEST_HOLD_NS = 10_000_000_000, 80_000_000_000


@dataclass(slots=True)
class _Heard:
    """Frames that were received at one gain: when the first one was, their number, and what is known of them."""

    since: int = 0
    frames: int = 0
    loudest_dbfs: float = -math.inf
    snrs_db: list[float] = field(default_factory=list)
    #: frames that were damaged, and that were missed between those that were received
    damaged: int = 0
    missed: int = 0

    @property
    def snr_db(self) -> float:
        """Mean SNR; NaN where it is unknown."""
        return fmean(self.snrs_db) if self.snrs_db else math.nan

    @property
    def lost(self) -> float:
        """Share of the frames that were lost."""
        return (self.damaged + self.missed) / max(self.frames + self.missed, 1)

    def better_than(self, other: "_Heard") -> bool:
        """Whether it is better by a difference that counts."""
        sent, others = self.frames + self.missed, other.frames + other.missed
        mean = (self.lost * sent + other.lost * others) / (sent + others)
        error = math.sqrt(mean * (1 - mean) * (1 / sent + 1 / others))
        fewer = other.lost - self.lost
        if abs(fewer) > max(MORE_LOST, 2 * error):
            return fewer > 0
        return self.snr_db > other.snr_db + WORSE_DB


@dataclass(slots=True)
class GainControl:
    """Chooses a receiver's gain (dB) within a range; every method returns the new gain, or None for no change."""

    gain_db: float
    minimum_db: float
    maximum_db: float
    _changed_at: int = 0
    _heard_at: int | None = None
    #: the present window, and those before it at this gain
    _window: _Heard = field(default_factory=_Heard)
    _windows: deque[_Heard] = field(default_factory=lambda: deque(maxlen=KNOWN))
    #: the gain before the present change and what was heard with it, until the change is judged
    _before: tuple[float, _Heard] | None = None
    #: not before then less gain is tried again; None: it has not been since the gain settled
    _probe_at: int | None = None
    _again_ns: int = AGAIN_NS
    #: peaks in a row that clipped; the largest one since the last change or frame
    _clipped: int = 0
    _peak_dbfs: float = -math.inf
    #: whether the search goes down from gain to gain
    _sweeping: bool = False
    #: no gain above it until then
    _ceiling_db: float = math.inf
    _ceiling_until: int = 0
    _hold_ns: int = HOLD_NS

    def handle_peak(self, peak_dbfs: float, now: int) -> float | None:
        """Take the largest sample since the last call (dBFS)."""
        if now - self._changed_at < SETTLE_NS:
            return None
        clips = peak_dbfs > CLIP_DBFS
        self._clipped = self._clipped + 1 if clips else 0
        heard = self._heard_at is not None and now - self._heard_at < SEARCH_NS
        if clips and (not heard or self._clipped >= FOREIGN_PEAKS):
            self._hold(self.gain_db - STEP_DB, now)
            return self._set(self.gain_db - STEP_DB, now)
        self._peak_dbfs = max(self._peak_dbfs, peak_dbfs)
        if heard or now - max(self._heard_at or 0, self._changed_at) < SEARCH_NS:
            return None
        return self._search(now)

    def handle_frame(
        self, rssi_dbfs: float, snr_db: float | None, now: int, *, missed: int = 0, damaged: bool = False
    ) -> float | None:
        """Take the mean level of a received frame (dBFS), its SNR, and how many were missed right before it."""
        self._heard_at, self._sweeping, self._peak_dbfs = now, False, -math.inf
        if now - self._changed_at < SETTLE_NS:
            return None
        if rssi_dbfs > HIGH_DBFS:
            return self._set(self.gain_db + TARGET_DBFS - rssi_dbfs, now)
        window = self._window
        if window.frames == 0:
            # those before it were missed with another gain
            window.since, missed = now, 0
        window.frames += 1
        window.damaged += damaged
        window.missed += missed
        window.loudest_dbfs = max(window.loudest_dbfs, rssi_dbfs)
        if snr_db is not None:
            window.snrs_db.append(snr_db)
        if window.frames < FRAMES or now - window.since < WINDOW_NS:
            return None
        self._windows.append(window)
        self._window = _Heard()
        return self._judge(window, now)

    def _judge(self, window: _Heard, now: int) -> float | None:
        """Decide at the end of a window."""
        if self._before is not None:
            (gain_db, before), heard = self._before, _joined(self._windows)
            more, better, worse = self.gain_db > gain_db, heard.better_than(before), before.better_than(heard)
            if more and not (better or worse) and len(self._windows) < TRIAL:
                return None
            if worse if more else not better:
                if more:
                    self._hold(gain_db, now)
                else:
                    self._again_ns = min(2 * self._again_ns, LONGEST_HOLD_NS)
                return self._set(gain_db, now)
            self._before, self._again_ns = None, AGAIN_NS
            # less gain that is better: try still less, and do not come back
            self._probe_at = now if more else None
            if not more:
                self._hold(self.gain_db, now)
        wanted_db = self._within(self.gain_db + TARGET_DBFS - window.loudest_dbfs, now)
        if window.loudest_dbfs < LOW_DBFS and wanted_db > self.gain_db:
            return self._try(wanted_db, now)
        untried = self._probe_at is None and not math.isnan(window.snr_db)
        lossy = window.lost >= LOSSY and now >= (self._probe_at or 0)
        if untried or lossy:
            self._probe_at = now + self._again_ns
            return self._try(self.gain_db - (STEP_DB if lossy else PROBE_DB), now)
        return None

    def _search(self, now: int) -> float | None:
        """Change the gain because no frame was heard for long."""
        if self._before is not None:
            # no frame since the change: it was a mistake
            gain_db, _ = self._before
            if self.gain_db > gain_db:
                self._hold(gain_db, now)
            return self._set(gain_db, now)
        by_peak_db = self._within(self.gain_db + PEAK_DBFS - self._peak_dbfs, now)
        if not self._sweeping and by_peak_db > self.gain_db + 1:
            return self._set(by_peak_db, now)
        below_db = self.gain_db - STEP_DB
        self._sweeping = below_db >= self.minimum_db
        return self._set(below_db if self._sweeping else self.maximum_db, now)

    def _try(self, gain_db: float, now: int) -> float | None:
        """Change the gain for some windows, which are then compared with those before."""
        before = self.gain_db, _joined(self._windows)
        new_db = self._set(gain_db, now)
        if new_db is not None:
            self._before = before
        return new_db

    def _hold(self, ceiling_db: float, now: int) -> None:
        """Stay at or below a gain for a time, which doubles when it has hardly passed."""
        again = now < self._ceiling_until + self._hold_ns
        self._hold_ns = min(2 * self._hold_ns, LONGEST_HOLD_NS) if again and self._ceiling_until else HOLD_NS
        self._ceiling_db, self._ceiling_until = ceiling_db, now + self._hold_ns

    def _within(self, gain_db: float, now: int) -> float:
        ceiling_db = self._ceiling_db if now < self._ceiling_until else math.inf
        return max(min(gain_db, ceiling_db, self.maximum_db), self.minimum_db)

    def _set(self, gain_db: float, now: int) -> float | None:
        gain_db = min(max(gain_db, self.minimum_db), self.maximum_db)
        self._before, self._window = None, _Heard()
        self._windows.clear()
        self._clipped, self._peak_dbfs = 0, -math.inf
        if gain_db == self.gain_db:
            return None
        self.gain_db, self._changed_at = gain_db, now
        return gain_db


def _joined(windows: Iterable[_Heard]) -> _Heard:
    """Return what was heard in all of some windows."""
    joined = _Heard()
    for one in windows:
        joined.frames += one.frames
        joined.snrs_db += one.snrs_db
        joined.damaged += one.damaged
        joined.missed += one.missed
    return joined
