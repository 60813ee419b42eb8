"""How many frames are lost at which SNR, for every mode of PHY ofdm.

The thresholds are those of the modem alone in white noise: the SNR per sample at which a tenth of the frames of 1500
octets is lost. liquid-dsp's own receiver has them 0.4 to 0.8 dB higher.
"""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple
from warnings import catch_warnings, filterwarnings

import pytest

from hil_tests.bench import Bench, frames
from hil_tests.conftest import Figures

pytestmark = pytest.mark.radio

#: dB around the threshold
OFFSETS_DB = (-2.5, -1.8, -1.0, -0.5, 0.0, 0.5, 1.0, 1.8, 2.5)
FRAMES = 60
#: how far from its threshold a mode must have got to the other side of it
MARGIN_DB = 1.5


class Mode(NamedTuple):
    modulation: str
    fec: str
    threshold_db: float

    def __str__(self) -> str:
        return self.modulation if self.fec == "none" else f"{self.modulation} {self.fec}"


class Point(NamedTuple):
    #: as the receiver measured it
    snr_db: float
    per: float
    #: how much more the receiver measured than the air was set to; None where only measurement can tell
    excess_db: float | None


MODES = (
    Mode("bpsk", "none", 8.3),
    Mode("qpsk", "none", 11.5),
    Mode("qpsk", "golay2412", 6.4),
    Mode("qam16", "none", 18.6),
    Mode("qam64", "none", 24.7),
)


@pytest.fixture(scope="module")
def curves(plots: Path | None) -> Iterator[dict[Mode, list[Point]]]:
    """What has been measured so far, drawn at the end."""
    curves: dict[Mode, list[Point]] = {}
    yield curves
    if plots is not None and curves:
        draw(curves, plots / "waterfall.png")


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_frames_are_lost_below_the_threshold_only(
    bench: Bench, figures: Figures, mode: Mode, curves: dict[Mode, list[Point]]
) -> None:
    points = curves[mode] = list(measure(bench, mode))
    for point in points:
        print(f"{mode}: SNR {point.snr_db:.2f} dB, PER {100 * point.per:.1f} %")
    excesses_db = [point.excess_db for point in points if point.excess_db is not None]
    if excesses_db:
        figures.check("error of the measured SNR", max(map(abs, excesses_db)), "dB", most=1.0)
    good = [point for point in points if point.snr_db >= mode.threshold_db + MARGIN_DB]
    bad = [point for point in points if point.snr_db <= mode.threshold_db - MARGIN_DB]
    assert len(good) >= 2
    assert bad
    figures.check(f"PER above {mode.threshold_db + MARGIN_DB:.1f} dB", max(point.per for point in good), most=0.1)
    figures.check(f"PER below {mode.threshold_db - MARGIN_DB:.1f} dB", min(point.per for point in bad), least=0.4)


def measure(bench: Bench, mode: Mode) -> Iterator[Point]:
    with bench.pair(modulation=mode.modulation, fec=mode.fec) as pair:
        for offset_db in OFFSETS_DB:
            loss_db = pair.set_snr(mode.threshold_db + offset_db)
            exchange = pair.exchange(frames(FRAMES))
            excess_db = None if bench.clear_snr_db is None else exchange.snr_db - (bench.clear_snr_db - loss_db)
            yield Point(exchange.snr_db, exchange.per, excess_db)


def draw(curves: dict[Mode, list[Point]], path: Path) -> None:
    with catch_warnings():
        # Debian's own matplotlib, which GNU Radio brings along, hides the 3D axes of ours
        filterwarnings("ignore", "Unable to import Axes3D")
        from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    for number, (mode, points) in enumerate(curves.items()):
        colour = f"C{number}"
        axes.plot([point.snr_db for point in points], [100 * point.per for point in points], "o-", label=str(mode))
        axes.plot(mode.threshold_db, 10, "x", color=colour, markersize=10, markeredgewidth=2)
    lowest, *_, highest = sorted(point.snr_db for point in chain(*curves.values()))
    axes.set(
        xlim=(lowest - 1, highest + 1),
        ylim=(-2, 102),
        xlabel="SNR per sample as measured by the receiver (dB)",
        ylabel="lost frames (%)",
    )
    axes.set_title(f"PHY ofdm, {FRAMES} frames of 1500 bytes per point; ×: the modem alone", fontsize=11)
    axes.grid(alpha=0.3)
    figure.legend(loc="outside right upper")
    figure.savefig(path, dpi=120)
