"""Gain control of a receiver: slow, from levels of frames and peaks, not an AGC loop over samples.

Rules kept: a core (no clock, no radio: `now` comes in, a gain comes out). The gain decreases when the converter clips.
It increases when frames are so weak that quantisation matters, or when no frame has come for long. Otherwise it stays,
since a change of gain during a frame distorts the frame.

Left out: the balance of several amplifier stages; UHD distributes one gain over them.
"""

from dataclasses import dataclass

#: a peak above this is clipping (dBFS)
CLIP_DBFS = -1.0
#: wanted level of frames, and the level below which they are too weak (dBFS, mean over a frame)
TARGET_DBFS = -20.0
WEAK_DBFS = -45.0
STEP_DB = 10.0
#: the least time between two changes, and the time without a frame after which the gain is searched
SETTLE_NS = 50_000_000
SEARCH_NS = 2_000_000_000


@dataclass(slots=True)
class GainControl:
    """Chooses a receiver's gain (dB) within a range; every method returns the new gain, or None for no change."""

    gain_db: float
    minimum_db: float
    maximum_db: float
    _changed_at: int = 0
    _received_at: int = 0

    def handle_peak(self, peak_dbfs: float, now: int) -> float | None:
        """Take the largest sample since the last call (dBFS)."""
        if peak_dbfs > CLIP_DBFS:
            return self._set(self.gain_db - STEP_DB, now)
        if now - max(self._received_at, self._changed_at) >= SEARCH_NS:
            # the gain may be too low to receive anything: try all gains, the largest first
            below = self.gain_db - STEP_DB
            return self._set(self.maximum_db if below < self.minimum_db else below, now)
        return None

    def handle_frame(self, rssi_dbfs: float, now: int) -> float | None:
        """Take the mean level of a decoded frame (dBFS)."""
        self._received_at = now
        return self._set(self.gain_db + TARGET_DBFS - rssi_dbfs, now) if rssi_dbfs < WEAK_DBFS else None

    def _set(self, gain_db: float, now: int) -> float | None:
        gain_db = min(max(gain_db, self.minimum_db), self.maximum_db)
        if gain_db == self.gain_db or now - self._changed_at < SETTLE_NS:
            return None
        self.gain_db, self._changed_at = gain_db, now
        return gain_db
