"""Spectrum and constellation of a station's receiver, a few times a second, for the dashboard."""

from flowgraphs.spectrum import spectrum_db
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
        samples = self._transceiver.samples()
        if len(samples) < _BINS:
            return None
        self._next_at = now + _INTERVAL_NS
        constellation = self._transceiver.constellation()
        settings = self._transceiver.settings
        return PhyView(
            time_ns=time_ns,
            link=self._link,
            center_hz=settings.rx_hz,
            rate_sps=settings.rate_sps,
            spectrum_db=tuple(round(float(power), 1) for power in spectrum_db(samples, _BINS)),
            symbols=()
            if constellation is None
            else tuple((round(float(s.real), 3), round(float(s.imag), 3)) for s in constellation.symbols),
            modulation="" if constellation is None else constellation.modulation,
        )
