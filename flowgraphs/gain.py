"""Gain control of a receiver: slow, from levels of frames and peaks, not an AGC loop over samples.

Rules kept
- A core (no clock, no radio: `now` comes in, a gain comes out).
- A change of gain distorts the frame on the air, so the gain stays while the loudest frames of a second are between
  LOW_DBFS and HIGH_DBFS. Beyond, it brings them to TARGET_DBFS: down at once, up by the loudest frame of a second, so
  that fading is not followed.
- Peaks are those of the sampled band. A transmitter beside it may fill the converter unseen, so more gain must not cost
  SNR: then the gain goes back. Once settled, less gain is tried, and kept while the SNR rises.
- Bursts of others that clip for long lower the gain, for a time that doubles as they come again.
- Without frames, peaks are brought to PEAK_DBFS; then lower gains are tried, one after the other.

Left out: the balance of several amplifier stages; UHD distributes one gain over them.
"""

import math
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
HOLD_NS, LONGEST_HOLD_NS = 5_000_000_000, 80_000_000_000


@dataclass(slots=True)
class GainControl:
    """Chooses a receiver's gain (dB) within a range; every method returns the new gain, or None for no change."""

    gain_db: float
    minimum_db: float
    maximum_db: float
    _changed_at: int = 0
    _heard_at: int | None = None
    #: the present window: its start, its loudest frame, its SNRs, the number of its frames
    _since: int = 0
    _loudest_dbfs: float = -math.inf
    _snrs_db: list[float] = field(default_factory=list)
    _frames: int = 0
    #: gain and mean SNR before the present change, until it is judged
    _before: tuple[float, float] | None = None
    #: whether less gain has been tried since the gain settled
    _probed: bool = False
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

    def handle_frame(self, rssi_dbfs: float, snr_db: float | None, now: int) -> float | None:
        """Take the mean level of a decoded frame (dBFS) and its SNR."""
        self._heard_at, self._sweeping, self._peak_dbfs = now, False, -math.inf
        if now - self._changed_at < SETTLE_NS:
            return None
        if rssi_dbfs > HIGH_DBFS:
            return self._set(self.gain_db + TARGET_DBFS - rssi_dbfs, now)
        if self._frames == 0:
            self._since = now
        self._frames += 1
        self._loudest_dbfs = max(self._loudest_dbfs, rssi_dbfs)
        if snr_db is not None:
            self._snrs_db.append(snr_db)
        if self._frames < FRAMES or now - self._since < WINDOW_NS:
            return None
        return self._judge(now)

    def _judge(self, now: int) -> float | None:
        """Decide at the end of a window."""
        level_dbfs, snr_db = self._loudest_dbfs, fmean(self._snrs_db) if self._snrs_db else math.nan
        before = self._before
        self._clear()
        if before is not None:
            gain_db, snr_before_db = before
            more = self.gain_db > gain_db
            if snr_db < snr_before_db - WORSE_DB if more else not snr_db > snr_before_db + WORSE_DB:
                if more:
                    self._hold(gain_db, now)
                return self._set(gain_db, now)
            # less gain and a better SNR: try still less, and do not come back
            self._probed = more
            if not more:
                self._hold(self.gain_db, now)
        wanted_db = self._within(self.gain_db + TARGET_DBFS - level_dbfs, now)
        if level_dbfs < LOW_DBFS and wanted_db > self.gain_db:
            return self._try(wanted_db, snr_db, now)
        if not self._probed and not math.isnan(snr_db):
            self._probed = True
            return self._try(self.gain_db - PROBE_DB, snr_db, now)
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

    def _try(self, gain_db: float, snr_db: float, now: int) -> float | None:
        """Change the gain for a window, after which the SNRs are compared."""
        before = self.gain_db, snr_db
        new_db = self._set(gain_db, now)
        if new_db is not None and not math.isnan(snr_db):
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

    def _clear(self) -> None:
        self._before = None
        self._frames, self._loudest_dbfs = 0, -math.inf
        self._snrs_db.clear()

    def _set(self, gain_db: float, now: int) -> float | None:
        gain_db = min(max(gain_db, self.minimum_db), self.maximum_db)
        self._clear()
        self._clipped, self._peak_dbfs = 0, -math.inf
        if gain_db == self.gain_db:
            return None
        self.gain_db, self._changed_at = gain_db, now
        return gain_db
