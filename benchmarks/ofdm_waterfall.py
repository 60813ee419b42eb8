"""Frame loss over SNR of PHY ofdm in white noise, beside liquid-dsp's own transmitter and receiver.

    .venv/bin/python -m benchmarks.ofdm_waterfall [--frames N] [--seed N] [--modes MODE ...] [--plot FILE.png] [--json]

A mode is a modulation and a code, as in qpsk/golay2412; all are measured by default, with frames of 1500 bytes, 64
subcarriers, a cyclic prefix of 16, a random phase and no carrier offset. Both get noise of the same seed. SNR is per
sample, over the whole sampled band. From where frames begin to get through it goes up in steps of 0.5 dB; shown is
where 10 % of the frames are lost, on a line between two points. `--plot` draws the modes named.
"""

from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Protocol

import numpy as np

from benchmarks.common import Column, Results, crossing, parser, whole
from flowgraphs.phy import Samples
from flowgraphs.phys.ofdm.modem import Demodulator, Modulator, OfdmPhy
from flowgraphs.phys.ofdm.options import FEC, MODULATIONS
from tests.harness.awgn import air
from tests.harness.liquid import FEC as LIQUIDS_FEC
from tests.harness.liquid import ffi, liquid, make

FRAME_BYTES = 1500
#: subcarriers, cyclic prefix, taper
SHAPE = (64, 16, 4)
#: frames on the air at a time
BATCH = 10
#: the search for a mode's range: frames per point, step, begin
COARSE_FRAMES, COARSE_DB, LOWEST_DB = 20, 2.0, 0.0
FINE_DB = 0.5
LOSS = 0.1
#: a curve ends below this
DONE = 0.01
COLUMNS = {
    "mode": Column(""),
    "ours_db": Column("ours", ".1f"),
    "liquid_db": Column("liquid", ".1f"),
    "difference_db": Column("difference", "+.2f"),
}

ffi.cdef(
    """
    typedef struct {
        float evm;
        float rssi;
        float cfo;
        float * framesyms;
        unsigned int num_framesyms;
        unsigned int mod_scheme;
        unsigned int mod_bps;
        unsigned int check;
        unsigned int fec0;
        unsigned int fec1;
    } framesyncstats_s;

    typedef int (*framesync_callback)(unsigned char * header, int header_valid, unsigned char * payload,
        unsigned int payload_len, int payload_valid, framesyncstats_s stats, void * userdata);

    typedef struct ofdmflexframesync_s * ofdmflexframesync;
    ofdmflexframesync ofdmflexframesync_create(unsigned int M, unsigned int cp_len, unsigned int taper_len,
        unsigned char * p, framesync_callback callback, void * userdata);
    int ofdmflexframesync_destroy(ofdmflexframesync q);
    int ofdmflexframesync_execute(ofdmflexframesync q, float * samples, unsigned int n);
    """
)

#: points: SNR (dB), share of the frames that are lost
Curve = list[tuple[float, float]]


class Link(Protocol):
    """One transmitter and its receiver."""

    rms: float

    def modulate(self, frame: bytes) -> Samples:
        """Return a frame's burst."""

    def heard(self, samples: Samples) -> int:
        """Return how many frames came through undamaged."""


class Ours:
    """PHY ofdm."""

    def __init__(self, modulation: str, fec: str) -> None:
        phy = OfdmPhy(1e6, modulation=modulation, fec=fec)
        self.rms = phy.rms
        self.modulate = Modulator(phy).modulate
        self._demodulator = Demodulator(phy)

    def heard(self, samples: Samples) -> int:
        return sum(received.crc_ok for received in self._demodulator.feed(samples))


class Liquids:
    """liquid's own: frames with its default header, and nothing done to the samples."""

    rms = 1.0

    def __init__(self, modulation: str, fec: str) -> None:
        self._liquid = library = liquid()
        properties = ffi.new(
            "ofdmflexframegenprops_s *",
            {
                "check": library.liquid_getopt_str2crc(b"crc32"),
                "fec0": library.liquid_getopt_str2fec(LIQUIDS_FEC[fec].encode()),
                "fec1": library.liquid_getopt_str2fec(b"none"),
                "mod_scheme": library.liquid_getopt_str2mod(modulation.encode()),
            },
        )
        self._generator = make(
            library.ofdmflexframegen_create, library.ofdmflexframegen_destroy, *SHAPE, ffi.NULL, properties
        )
        self._callback = ffi.callback("framesync_callback", self._count)
        self._synchronizer = make(
            *(library.ofdmflexframesync_create, library.ofdmflexframesync_destroy, *SHAPE, ffi.NULL),
            *(self._callback, ffi.NULL),
        )
        #: how far frames came: "header" or "payload" is where they were damaged
        self.ends = Counter[str]()

    def modulate(self, frame: bytes) -> Samples:
        self._liquid.ofdmflexframegen_assemble(self._generator, bytes(8), frame, len(frame))
        symbols = self._liquid.ofdmflexframegen_getframelen(self._generator)
        burst = np.empty(symbols * (SHAPE[0] + SHAPE[1]) + SHAPE[2], np.complex64)
        self._liquid.ofdmflexframegen_write(self._generator, ffi.from_buffer("float[]", burst), len(burst))
        return burst

    def heard(self, samples: Samples) -> int:
        before = self.ends["good"]
        self._liquid.ofdmflexframesync_execute(self._synchronizer, ffi.from_buffer("float[]", samples), len(samples))
        return self.ends["good"] - before

    def _count(self, header: object, header_ok: int, payload: object, n: int, crc_ok: int, *about: object) -> int:
        self.ends["good" if crc_ok else "payload" if header_ok else "header"] += 1
        return 0


KINDS: dict[str, Callable[[str, str], Link]] = {"ours": Ours, "liquid's": Liquids}


def per(link: Link, snr_db: float, frames: int, seed: int) -> float:
    """Return the share of frames that are lost or damaged."""
    rng = np.random.default_rng(seed)
    good = 0
    for _ in range(0, frames, BATCH):
        bursts = [link.modulate(rng.bytes(FRAME_BYTES)) for _ in range(BATCH)]
        good += link.heard(air(bursts, rng, rms=link.rms, snr_db=snr_db).samples)
    return 1 - good / frames


def waterfall(mode: str, frames: int, seed: int) -> dict[str, Curve]:
    """Return the loss over SNR of both links, from nearly all of the frames to nearly none."""
    modulation, fec = mode.split("/")
    makers = {kind: partial(link, modulation, fec) for kind, link in KINDS.items()}
    bottom = next(at for at in count(LOWEST_DB, COARSE_DB) if per(makers["ours"](), at, COARSE_FRAMES, seed) < 1)
    curves: dict[str, Curve] = {}
    for kind, maker in makers.items():
        curve = curves[kind] = []
        for snr_db in count(bottom - COARSE_DB, FINE_DB):
            curve.append((snr_db, per(maker(), snr_db, frames, seed)))
            if curve[-1][1] < DONE:
                break
    return curves


def draw(curves: dict[str, dict[str, Curve]], file: Path) -> None:
    """Plot the curves: one colour per mode, ours with a line, liquid's with crosses."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(10, 5.5), layout="constrained")
    for mode, both in curves.items():
        # a loss of none of the frames has no place on this axis
        ours, theirs = ([(snr, loss) for snr, loss in both[kind] if loss] for kind in KINDS)
        (line,) = axes.semilogy(*zip(*ours, strict=True), label=mode)
        axes.semilogy(*zip(*theirs, strict=True), "x", color=line.get_color())
    axes.axhline(LOSS, color="0.6", linewidth=0.8)
    axes.set(
        xlabel="SNR per sample (dB)", ylabel=f"PER, {FRAME_BYTES} bytes", title="PHY ofdm (lines) and liquid's own (×)"
    )
    axes.grid(which="both", alpha=0.3)
    figure.legend(loc="outside right upper")
    figure.savefig(file, dpi=110)


def main() -> None:
    """Measure and print."""
    every = [f"{modulation}/{fec}" for modulation in MODULATIONS for fec in FEC]
    options_of = parser(__doc__)
    options_of.add_argument("--frames", type=whole(BATCH, BATCH), default=200, help="per point")
    options_of.add_argument("--modes", nargs="+", choices=every, default=every, metavar="MODE")
    options_of.add_argument("--plot", type=Path, metavar="FILE.png")
    options = options_of.parse_args()
    curves: dict[str, dict[str, Curve]] = {}
    results = Results(options, "vusrp and usrp", f"PHY ofdm alone, SNR (dB) at which {LOSS:.0%} are lost", COLUMNS)
    for mode in options.modes:
        curves[mode] = waterfall(mode, options.frames, options.seed)
        ours, theirs = (crossing(curves[mode][kind], LOSS) for kind in KINDS)
        results.add(mode=mode, ours_db=ours, liquid_db=theirs, difference_db=ours - theirs, per=curves[mode])
    if options.plot:
        draw(curves, options.plot)
    results.finish()


if __name__ == "__main__":
    main()
