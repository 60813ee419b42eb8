"""The choice of each frame's mode on a radio: `linklayer/adaptive/modes.py` with a PHY's modes.

Read first: that module, and `mode_report.py` beside it, whose report goes behind each frame.
"""

from collections.abc import Callable

from common.units import MS
from flowgraphs.phy import Received
from flowgraphs.transceiver import Transceiver
from linklayer.adaptive.mode_report import REPORT_BYTES, Heard, Sent
from linklayer.adaptive.modes import Mode, ModeChooser

#: the link's costs change with the rounds that it has
_RECONSIDER_NS = 1000 * MS


class ModeControl:
    """Chooses for the frames that `transceiver`, whose PHY offers modes, sends.

    `cost(loss)`: what the link spends on a packet at this frame loss (`Link.frame_cost`).
    """

    def __init__(self, transceiver: Transceiver, cost: Callable[[float], float], now: int) -> None:
        self._transceiver = transceiver
        self._phys = [mode.phy for mode in transceiver.phy.modes()]
        self._names = [phy.mode() for phy in self._phys]
        self._indexes = {name: index for index, name in enumerate(self._names)}
        modes = [Mode(mode.phy.mode(), mode.snr_db, mode.width_db) for mode in transceiver.phy.modes()]
        self._airtimes_ns: dict[tuple[int, int], int] = {}
        self._chooser = ModeChooser(modes, self._airtime_ns, cost, now)
        self._heard, self._sent = Heard(), Sent()
        self._reconsider_at = now + _RECONSIDER_NS

    def airtime_ns(self, nbytes: int, now: int) -> int:
        """Return the airtime of a link frame of `nbytes` in the mode that it would have now."""
        nbytes += REPORT_BYTES
        return self._airtime_ns(nbytes, self._chooser.choose(nbytes, now))

    def send(self, frame: bytes, now: int) -> None:
        """Send a link frame in its best mode, with a report behind it."""
        if now >= self._reconsider_at:
            self._reconsider_at = now + _RECONSIDER_NS
            self._chooser.forget_choices()
        mode = self._chooser.choose(len(frame) + REPORT_BYTES, now)
        self._sent.handle_frame(mode)
        self._transceiver.send(frame + self._heard.report(), self._names[mode])

    def take(self, received: Received, now: int) -> bytes:
        """Learn from a received frame; return the link frame in it, which may be damaged."""
        frame, report = received.payload[:-REPORT_BYTES], received.payload[-REPORT_BYTES:]
        if received.crc_ok and len(report) == REPORT_BYTES:
            self._heard.handle_frame(received.sequence, received.snr_db)
            snr_db, fates = self._sent.handle_report(report)
            for fate in fates:
                self._chooser.handle_fate(fate.mode, fate.lost, now)
            # one that tells of no frame anew is no news of the air either
            if snr_db is not None and any(not fate.lost for fate in fates):
                self._chooser.handle_report(snr_db, now)
        return frame

    def _airtime_ns(self, nbytes: int, mode: int) -> int:
        airtime_ns = self._airtimes_ns.get((nbytes, mode))
        if airtime_ns is None:
            airtime_ns = self._airtimes_ns[nbytes, mode] = self._transceiver.airtime_ns(nbytes, self._phys[mode])
        return airtime_ns
