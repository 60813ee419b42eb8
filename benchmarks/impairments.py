"""Frame loss over each impairment of a radio, in virtual time: two devices on a lockstep air, one of them impaired.

    .venv/bin/python -m benchmarks.impairments [--phy PHY] [--modes MODE ...] [--only NAME ...] [--frames N] [--seed N]
        [--csv FILE] [--plot FILE.png] [--json]

A mode is a PHY's option with its value, as in modulation=qam16 for `ofdm` or encoding=qpsk-3/4 for `wifi`. Frames of
1500 octets, or the most that the PHY carries, at 2.5 Msps and 2.45 GHz, each a burst of its own, cross a static path
without delay. The noise is 2 dB below that at which 1 % of the frames are lost without impairments; the receiver's
gain gives the frames -17.5 dBFS.
Each impairment is raised in steps until half of the frames are lost or its list ends. Shown is the value at which 10 %
are lost, on a line between two points.

A CSV file that exists keeps its rows of other modes and impairments, and the plot shows them too: one file may have
both PHYs.
"""

import csv
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import count, pairwise
from pathlib import Path

import numpy as np

from benchmarks.common import Column, Results, parser, whole
from flowgraphs import wifi_traffic
from flowgraphs.air import Air, Chain, Impairments
from flowgraphs.phy import Phy, Samples
from flowgraphs.phys import make_phy
from tests.harness.bursts import sending
from tests.harness.radio_process import RadioProcess

RATE_SPS, CARRIER_HZ = 2.5e6, 2.45e9
FRAME_BYTES = 1500
MODES = {"ofdm": ("modulation=qpsk", "modulation=qam64"), "wifi": ("encoding=qpsk-1/2", "encoding=qam64-3/4")}
#: frames that are sent before the receiver hears them: a channel keeps two million samples
BATCH = 25
GAP, LEAD, TAIL = 600, 2_000, 2_000
#: a transmitter's full scale leaves with 0 dBm at this gain, and a path takes 60 dB
TX_GAIN_DB, PATH_DB = 40.0, -60.0
LEVEL_DBFS = -17.5
BLOCKER_HZ, BLOCKER_SAMPLES = 50e6, 900_000
#: white noise of this amplitude (dBFS) is the blocker
BLOCKER_DBFS = 20 * np.log10(np.sqrt(2) / 8)
CLEAN, LOSS, ENOUGH = 0.01, 0.1, 0.5
#: the search for the SNR: begin, steps, and what comes on top of its end
LOWEST_DB, COARSE_DB, STEP_DB, MARGIN_DB = 4.0, 3.0, 0.5, 2.0
#: where a B210's phase noise has its energy (Hz, dB over its level near the carrier)
MASK = ((1e3, 0.0), (1e4, -1.0), (1e5, -4.0), (1e6, -25.0))
COLUMNS = {
    "impairment": Column(""),
    "mode": Column("mode"),
    "unit": Column("unit"),
    "ten_percent": Column("10 % lost", ".3g"),
    "snr_db": Column("SNR (dB)", ".1f"),
}

#: points: value of an impairment, share of the frames that are lost
Curve = list[tuple[float, float]]
#: of the CSV file, in the order of HEADINGS
Row = tuple[str, ...]
HEADINGS = ("impairment", "unit", "mode", "snr_db", "value", "per")


@dataclass(frozen=True)
class Case:
    """One impairment: its values, mildest first, and the effect of one on the bench."""

    unit: str
    values: tuple[float, ...]
    apply: Callable[["Bench", float], None]


class Bench:
    """A transmitter, a receiver and an interferer beside the band, on an air with known levels."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.air = Air.create(f"impairments-{os.getpid()}", clock="lockstep", seed=seed)
        self.radios = {
            serial: RadioProcess(
                folder, f"type=vusrp,air={self.air.name},serial={serial}", RATE_SPS, CARRIER_HZ, TX_GAIN_DB
            )
            for serial in ("V1", "V2", "V3")
        }
        self.radios["V3"].tune("tx", CARRIER_HZ + BLOCKER_HZ)
        self.blocker = (np.random.default_rng(seed).standard_normal(2 * BLOCKER_SAMPLES, np.float32) / 8).view(
            np.complex64
        )
        self.blocked = False
        self.rms, self.snr_db = 1.0, 0.0
        self.wifi = folder / "wifi"
        wifi_traffic.samples(2.0, 0.1, RATE_SPS, np.random.default_rng(seed)).tofile(self.wifi)
        self.air.set_link("V1", "V2", gain_db=PATH_DB)

    def close(self) -> None:
        for radio in self.radios.values():
            radio.close()
        self.air.close()

    def prepare(self, snr_db: float, rms: float) -> None:
        """Take all impairments away, and set levels for frames of amplitude `rms`."""
        self.rms, self.snr_db = rms, snr_db
        wanted_dbm = PATH_DB + 20 * np.log10(rms)
        for serial in self.radios:
            self.air.set_impairments(serial, Impairments())
        self.air.set_clock_offset("V1", 0.0)
        self.air.set_interference("V2", None)
        self.blocked = False
        self.air.set_receiver("V2", noise_dbm_hz=wanted_dbm - snr_db - 10 * np.log10(RATE_SPS))
        self.gain(LEVEL_DBFS)

    def gain(self, level_dbfs: float) -> None:
        """Let the wanted frames arrive at this level."""
        # an ideal device is full at -10 dBm less its gain
        self.radios["V2"].gain("rx", -10.0 - (PATH_DB + 20 * np.log10(self.rms)) + level_dbfs)

    def heard(self, bursts: list[Samples]) -> Iterator[Samples]:
        """Yield what the receiver hears of the bursts."""
        tx, rx = self.radios["V1"], self.radios["V2"]
        for first in range(0, len(bursts), BATCH):
            begin = at = rx.now() + LEAD
            apart = tx.now() - rx.now()
            for burst in bursts[first : first + BATCH]:
                at += GAP
                tx.send(burst, at=at + apart)
                at += len(burst)
            if self.blocked:
                self.radios["V3"].send(self.blocker[: at - begin - LEAD], at=begin + LEAD)
            yield rx.listen(at + TAIL - begin, at=begin, chunk=1 << 16)[0]


def flaws(serial: str, side: str, make: Callable[[Bench, float], Chain]) -> Callable[[Bench, float], None]:
    """Impair one chain of a device."""

    def apply(bench: Bench, value: float) -> None:
        chain = make(bench, value)
        bench.air.set_impairments(serial, Impairments(tx=chain) if side == "tx" else Impairments(rx=chain))

    return apply


def device(serial: str, make: Callable[[Bench, float], Impairments]) -> Callable[[Bench, float], None]:
    """Impair a device as a whole."""
    return lambda bench, value: bench.air.set_impairments(serial, make(bench, value))


def skewed(dbc: float) -> Chain:
    """An image of so many dBc, half of it by gain and half by phase."""
    both = 2 * 10 ** (dbc / 20) / np.sqrt(2)
    return Chain(iq_gain_db=20 * np.log10(1 + both), iq_phase_deg=float(np.degrees(both)))


def noisy(degrees: float) -> Chain:
    """Phase noise of so many degrees within 1 kHz and 1 MHz."""
    offsets = np.geomspace(1e3, 1e6, 10_001)
    shape = np.interp(np.log10(offsets), np.log10([hz for hz, _ in MASK]), [level for _, level in MASK])
    unit = np.degrees(np.sqrt(2 * np.trapz(10 ** (shape / 10), offsets)))
    return Chain(mask=tuple((hz, level + 20 * np.log10(degrees / unit)) for hz, level in MASK))


def over_frame(bench: Bench, dbc: float) -> float:
    """A level relative to the frames, in dB relative to the transmitter's full scale."""
    return min(dbc + 20 * float(np.log10(bench.rms)), 0.0)


def clipped(bench: Bench, level_dbfs: float) -> None:
    bench.gain(level_dbfs)


def blocked(bench: Bench, over_db: float) -> None:
    """A signal 50 MHz beside the wanted one, above it by so much, in front of the converter."""
    wanted_dbm = PATH_DB + 20 * np.log10(bench.rms)
    bench.air.set_link("V3", "V2", gain_db=wanted_dbm + over_db - BLOCKER_DBFS)
    bench.air.set_impairments("V2", Impairments(rx=Chain(bits=12), wideband=1.0))
    bench.blocked = True


def yielding(bench: Bench, over_db: float) -> None:
    """The same where the gain, of at least 0 dB, gives the sum of both the level that the wanted signal has alone."""
    blocked(bench, over_db)
    bench.gain(LEVEL_DBFS - 10 * float(np.log10(1 + 10 ** (over_db / 10))))


def beside_wifi(bench: Bench, over_db: float) -> None:
    """Bursts like Wi-Fi's for a tenth of the time, above the noise by so much."""
    wanted_dbm = PATH_DB + 20 * np.log10(bench.rms)
    level_dbm = wanted_dbm - bench.snr_db + over_db - 20 * np.log10(wifi_traffic.RMS)
    bench.air.set_interference("V2", bench.wifi, rate_sps=RATE_SPS, freq_hz=CARRIER_HZ, level_dbm=level_dbm)


CASES = {
    "image of the transmitter": Case(
        "dBc",
        (-40, -35, -32, -29, -27, -25, -22, -19, -16, -14, -12, -10, -9),
        flaws("V1", "tx", lambda bench, dbc: skewed(dbc)),
    ),
    "image of the receiver": Case(
        "dBc",
        (-40, -35, -32, -29, -27, -25, -22, -19, -16, -14, -12, -10, -9),
        flaws("V2", "rx", lambda bench, dbc: skewed(dbc)),
    ),
    "carrier leakage": Case(
        "dBc",
        (-45, -40, -36, -33, -30, -27, -24, -20, -15, -10, -6, -3, -2, -1, 0, 1, 2, 3, 6),
        flaws("V1", "tx", lambda bench, dbc: Chain(leakage_dbfs=over_frame(bench, dbc))),
    ),
    "DC offset": Case(
        "dBc",
        (-45, -40, -36, -33, -30, -27, -24, -20, -15, -10, -6, -3, -2, -1, 0, 1, 2, 3, 6),
        flaws("V2", "rx", lambda bench, dbc: Chain(leakage_dbfs=LEVEL_DBFS + dbc)),
    ),
    "spur at 300 kHz": Case(
        "dBc",
        (-45, -40, -37, -34, -31, -28, -25, -22, -19, -16),
        flaws("V2", "rx", lambda bench, dbc: Chain(spur_hz=3e5, spur_dbfs=LEVEL_DBFS + dbc)),
    ),
    "phase noise": Case(
        "degrees",
        (0.25, 0.5, 1, 1.5, 2, 2.5, 3, 4, 6, 8, 10, 12, 16),
        flaws("V1", "tx", lambda bench, degrees: noisy(degrees)),
    ),
    "compression": Case(
        "dB below P1dB",
        (15, 12, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, -1, -2, -3),
        device("V1", lambda bench, db: Impairments(p1db_dbm=20 * float(np.log10(bench.rms)) + db)),
    ),
    "converter": Case("bits", (10, 8, 7, 6, 5, 4, 3, 2), flaws("V2", "rx", lambda bench, bits: Chain(bits=bits))),
    "clipping": Case("dBFS", (-15, -12, -10, -9, -8, -7, -6, -5, -4, -2, 0, 3, 6, 10, 15), clipped),
    "blocker, same gain": Case("dB over the frames", (0, 5, 10, 12, 14, 16, 18, 20, 22, 25, 30), blocked),
    "blocker, gain lowered": Case("dB over the frames", (0, 10, 20, 25, 30, 35, 40, 44), yielding),
    "Wi-Fi, a tenth of the time": Case("dB over the noise", (-10, -5, 0, 3, 6, 10, 15, 20), beside_wifi),
    "slope of the filters": Case("dB", (1, 2, 3, 4, 5, 6), device("V2", lambda bench, db: Impairments(slope_db=db))),
    "loss at the edges": Case(
        "dB", (1, 2, 4, 6, 8, 10, 12, 15, 20), device("V2", lambda bench, db: Impairments(edge_db=db))
    ),
    "ramp": Case(
        "us", (1, 2, 5, 10, 20, 30, 40, 50, 100, 200, 400), device("V1", lambda bench, us: Impairments(ramp_us=us))
    ),
    # last, since it leaves the clocks apart in time
    "clock offset": Case(
        "ppm",
        (1, 2, 4, 5, 6, 7, 8, 9, 10),
        lambda bench, ppm: bench.air.set_clock_offset("V1", ppm),
    ),
}


def modulated(phy: Phy, frames: list[bytes]) -> list[Samples]:
    """Return the burst of each frame."""
    ends = np.cumsum([phy.frame_samples(len(frame)) for frame in frames])
    with sending(phy) as sender:
        for frame in frames:
            sender.mailbox.post(frame)
        sender.wait(int(ends[-1]))
        samples = np.array(sender.sink.data(), np.complex64)
    return np.split(samples[: ends[-1]], ends[:-1])


def loss(bench: Bench, phy: Phy, frames: list[bytes], bursts: list[Samples]) -> float:
    """Return the share of frames that are lost or damaged."""
    missing = set(frames) - {received.payload for received in phy.decode(bench.heard(bursts)) if received.crc_ok}
    return len(missing) / len(frames)


def reference_snr_db(bench: Bench, phy: Phy, frames: list[bytes], bursts: list[Samples]) -> float:
    """Return MARGIN_DB above the SNR from which nearly all frames come through without impairments."""

    def lost_at(snr_db: float) -> float:
        bench.prepare(snr_db, phy.rms)
        return loss(bench, phy, frames, bursts)

    coarse_db = next(at for at in count(LOWEST_DB, COARSE_DB) if lost_at(at) < ENOUGH)
    return next(at for at in count(coarse_db - COARSE_DB, STEP_DB) if lost_at(at) <= CLEAN) + MARGIN_DB


def crossing(curve: Curve) -> float | None:
    """The value at which a curve rises to LOSS, on straight lines between its points; None: it does not."""
    for (before, low), (after, high) in pairwise(curve):
        if low < LOSS <= high:
            return before + (LOSS - low) / (high - low) * (after - before)
    return None


def draw(curves: dict[str, dict[str, Curve]], title: str, file: Path) -> None:
    """Plot all curves: an impairment a panel, a mode a line."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    columns = 4
    rows = -(-len(curves) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(13, 2.6 * rows), layout="constrained", squeeze=False)
    for panel, (name, modes) in zip(axes.flat, curves.items(), strict=False):
        for mode, curve in modes.items():
            values, losses = zip(*curve, strict=True)
            panel.plot(values, losses, ".-", label=mode)
        case = CASES[name]
        panel.set(title=name, xlabel=case.unit, ylim=(-0.02, 1.02))
        if case.values[0] > 0 and case.values[-1] / case.values[0] >= 20:
            panel.set_xscale("log")
        if case.values[0] > case.values[-1]:
            panel.invert_xaxis()
        panel.axhline(LOSS, color="0.6", linewidth=0.8)
        panel.grid(alpha=0.3)
    for panel in axes.flat[len(curves) :]:
        panel.remove()
    for row in axes:
        row[0].set_ylabel("PER")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    figure.suptitle(title)
    figure.savefig(file, dpi=90)


def kept(file: Path) -> list[Row]:
    """Return the rows of an earlier run; none where there is no file."""
    if not file.exists():
        return []
    with file.open(newline="") as lines:
        _, *rows = csv.reader(lines)
    return [tuple(row) for row in rows]


def place(row: Row) -> tuple[int, int, str]:
    """Order rows by impairment and mode, as the tables above do; a mode that is not in them comes last."""
    known = [mode for modes in MODES.values() for mode in modes]
    return list(CASES).index(row[0]), known.index(row[2]) if row[2] in known else len(known), row[2]


def curves_of(rows: list[Row]) -> dict[str, dict[str, Curve]]:
    """Return the curve of each impairment and mode."""
    curves: dict[str, dict[str, Curve]] = {}
    for name, _, mode, _, value, per in rows:
        curves.setdefault(name, {}).setdefault(mode, []).append((float(value), float(per)))
    return curves


@contextmanager
def bench_of(seed: int) -> Iterator[Bench]:
    with tempfile.TemporaryDirectory() as folder, closing(Bench(Path(folder), seed)) as bench:
        yield bench


def main() -> None:
    """Measure and print."""
    options_of = parser(__doc__)
    options_of.add_argument("--phy", choices=tuple(MODES), default="ofdm")
    options_of.add_argument("--modes", nargs="+", metavar="MODE")
    options_of.add_argument("--only", nargs="+", choices=tuple(CASES), default=tuple(CASES), metavar="NAME")
    options_of.add_argument("--frames", type=whole(1), default=200, help="per point")
    options_of.add_argument("--csv", type=Path, metavar="FILE")
    options_of.add_argument("--plot", type=Path, metavar="FILE.png")
    options = options_of.parse_args()
    title = f"PHY {options.phy}, PER over each impairment, {options.frames} frames a point"
    results = Results(options, "none: devices in lockstep", title, COLUMNS)
    rng = np.random.default_rng(options.seed)
    octets = [rng.bytes(FRAME_BYTES) for _ in range(options.frames)]
    for mode in options.modes or MODES[options.phy]:
        option, _, value = mode.partition("=")
        phy = make_phy(options.phy, rate_sps=RATE_SPS, carrier_hz=CARRIER_HZ, **{option: value})
        frames = [each[: phy.max_frame_bytes] for each in octets]
        bursts = modulated(phy, frames)
        with bench_of(options.seed) as bench:
            snr_db = reference_snr_db(bench, phy, frames, bursts)
            for name in options.only:
                case = CASES[name]
                curve: Curve = []
                for number in case.values:
                    bench.prepare(snr_db, phy.rms)
                    case.apply(bench, number)
                    curve.append((number, loss(bench, phy, frames, bursts)))
                    if curve[-1][1] >= ENOUGH:
                        break
                about = {"mode": mode, "unit": case.unit, "snr_db": snr_db}
                results.add(impairment=name, ten_percent=crossing(curve), per=curve, **about)
    rows: list[Row] = []
    for row in results.rows:
        first = [row[key] for key in ("impairment", "unit", "mode", "snr_db")]
        rows += [tuple(map(str, (*first, *point))) for point in row["per"]]
    if options.csv:
        measured = {(row["impairment"], row["mode"]) for row in results.rows}
        rows = sorted([row for row in kept(options.csv) if (row[0], row[2]) not in measured] + rows, key=place)
        with options.csv.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(HEADINGS)
            writer.writerows(rows)
    if options.plot:
        draw(curves_of(rows), f"PER over each impairment, {options.frames} frames a point", options.plot)
    results.finish()


if __name__ == "__main__":
    main()
