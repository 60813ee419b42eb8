"""What two stations that choose modes tell each other behind each frame: which frames came, and at which SNR.

Read first: `modes.py`, which it is for. Seven octets behind the link's frame, big-endian, within the PHY's own CRC:

    | snr | 1 | SNR of the newest frame that came, in quarters of a dB above -20 dB, plus 1; 0: unknown    |
    | top | 2 | its number, modulo 2^16                                                                    |
    | came| 4 | bit i: frame top - 1 - i has come, undamaged                                               |

A frame's number is the PHY's (`Received.sequence`): it counts the frames of a transmitter.
"""

from collections import deque
from typing import Final, NamedTuple

#: octets behind a frame
REPORT_BYTES: Final = 7
_BITS: Final = 32
_MASK: Final = (1 << _BITS) - 1
_STEPS_PER_DB: Final = 4
_LEAST_DB: Final = -20.0
_NOTHING: Final = bytes(REPORT_BYTES)
_MODULUS: Final = 1 << 16
#: numbers of frames are known so far apart from the newest
_MOST_UNDER_WAY: Final = 1024


class Fate(NamedTuple):
    """One of our frames: the mode in which it went, and whether it was lost."""

    mode: int
    lost: bool


class Heard:
    """The receiving side: makes the reports of the frames that came."""

    def __init__(self) -> None:
        self._top: int | None = None
        self._came = 0
        self._snr_db: float | None = None

    def handle_frame(self, number: int, snr_db: float | None) -> None:
        """Take a frame that came undamaged; `number` is the PHY's."""
        top = self._top
        if top is None or not 0 <= number - top <= _BITS:
            # the first, far ahead, or of a transmitter that was made anew
            self._came = 0
        elif number > top:
            self._came = (self._came << number - top | 1 << number - top - 1) & _MASK
        self._top, self._snr_db = number, snr_db

    def report(self) -> bytes:
        """Return the octets to send behind the next frame."""
        if self._top is None:
            return _NOTHING
        steps = 0
        if self._snr_db is not None:
            steps = 1 + min(254, max(0, round((self._snr_db - _LEAST_DB) * _STEPS_PER_DB)))
        return bytes([steps]) + (self._top % _MODULUS).to_bytes(2, "big") + self._came.to_bytes(4, "big")


class Sent:
    """The sending side: knows the modes of the frames that went, and learns their fates from the peer's reports."""

    def __init__(self) -> None:
        self._next = 0
        #: number and mode of frames whose fate is not known
        self._under_way: deque[tuple[int, int]] = deque()

    def handle_frame(self, mode: int) -> None:
        """Note that the next frame goes in a mode."""
        self._under_way.append((self._next, mode))
        self._next += 1
        if len(self._under_way) > _MOST_UNDER_WAY:
            self._under_way.popleft()

    def handle_report(self, octets: bytes) -> tuple[float | None, list[Fate]]:
        """Return the SNR that the peer reports, if any, and the fates that are new; `octets` are a report's.

        A report of no frame of ours tells nothing.
        """
        if octets == _NOTHING or not self._next:
            return None, []
        newest = self._next - 1
        top = newest - (newest - int.from_bytes(octets[1:3], "big")) % _MODULUS
        if top < 0:
            return None, []
        came = int.from_bytes(octets[3:], "big")
        fates = []
        while self._under_way and self._under_way[0][0] <= top:
            number, mode = self._under_way.popleft()
            behind = top - number
            if behind <= _BITS:
                fates.append(Fate(mode, behind > 0 and not came >> behind - 1 & 1))
        snr_db = (octets[0] - 1) / _STEPS_PER_DB + _LEAST_DB if octets[0] else None
        return snr_db, fates
