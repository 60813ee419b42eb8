"""Spectrum and constellation of a station's receiver, a few times a second, for the dashboard."""

import numpy as np

from flowgraphs.transceiver import Transceiver
from telemetry.views import PhyView

_BINS = 512
#: time between two views
_INTERVAL_NS = 200_000_000


class ReceiverView:
    """Makes views of the radio that receives on `link`, while `watched`."""

    def __init__(self, link: str, transceiver: Transceiver) -> None:
        self.watched = False
        self._link = link
        self._transceiver = transceiver
        self._next_at = 0

    def poll(self, now: int, time_ns: int) -> PhyView | None:
        """Return a view with the time `time_ns`; None when not watched, too early, or without samples yet."""
        if not self.watched or now < self._next_at:
            return None
        spectrum = self._transceiver.spectrum_db(_BINS)
        if not len(spectrum):
            return None
        self._next_at = now + _INTERVAL_NS
        constellation = self._transceiver.constellation()
        symbols = np.round(() if constellation is None else constellation.symbols.astype(np.complex128), 3)
        settings = self._transceiver.settings
        return PhyView(
            time_ns=time_ns,
            link=self._link,
            center_hz=settings.rx_hz,
            rate_sps=settings.rate_sps,
            spectrum_db=tuple(np.round(spectrum.astype(np.float64), 1).tolist()),
            symbols=tuple(zip(symbols.real.tolist(), symbols.imag.tolist(), strict=True)),
            modulation="" if constellation is None else constellation.modulation,
        )
