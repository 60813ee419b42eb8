"""Views of a receiver at one instant: only shown, since they are too large and short-lived for a database."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PhyView:
    """Spectrum and constellation of one receiver."""

    time_ns: int
    #: the direction on which it receives
    link: str
    center_hz: float
    rate_sps: float
    #: power per bin relative to full scale, from the lowest frequency to the highest
    spectrum_db: tuple[float, ...]
    #: equalised payload symbols (I, Q) of the newest frame, mean power of the ideal constellation 1; empty without one
    symbols: tuple[tuple[float, float], ...]
    #: as in qpsk; empty when unknown
    modulation: str
