"""How many samples per second one core carries through PHY ofdm: liquid-dsp alone, with what we add, in GNU Radio.

    .venv/bin/python -m benchmarks.ofdm_phy [--repetitions N] [--json]

Transmit is frames of 1500 bytes one after the other. Receive busy is the same with short gaps and a little noise,
receive damaged with so much noise that every frame is looked at twice, in vain; receive idle is noise alone. `liquid`
is its own frame generator and synchronizer, `Python` the Modulator and the Demodulator, both given 65536 samples at a
time; `GNU Radio` is a flowgraph of the block and a vector source or a null sink, all its threads together. Shown is the
median of samples per second of processor time.
"""

import statistics
import time
from collections.abc import Callable

import numpy as np
from gnuradio import blocks, gr

from benchmarks.common import Column, Results, parser
from benchmarks.ofdm_waterfall import Liquids
from flowgraphs.native import native
from flowgraphs.phy import Samples
from flowgraphs.phys.ofdm.modem import Demodulator, Modulator, OfdmPhy
from tests.harness.awgn import air

FRAME_BYTES = 1500
FRAMES = 200
CHUNK = 1 << 16
#: mode, and an SNR (dB) at which it loses a tenth of its frames
MODES = (
    ("bpsk", "none", 8.3),
    ("qpsk", "none", 11.5),
    ("qpsk", "golay2412", 6.4),
    ("qam16", "none", 18.5),
    ("qam64", "none", 24.5),
)
BUSY_DB, DAMAGED_DB = 10.0, -3.0
IDLE_SAMPLES = 4_000_000
#: the least that a link of fadelab's runs at, each way
RATE_SPS = 2e6
KINDS = ("liquid", "Python", "GNU Radio")
COLUMNS = {
    "work": Column(""),
    **{kind: Column(kind, ".1f", 1e-6) for kind in KINDS},
    "core_share": Column("core at 2 Msps", ".1%"),
}

#: something that carries samples, and how many
Work = tuple[Callable[[], object], int]


def rate(work: Work) -> float:
    """Return samples per second of processor time."""
    carry, samples = work
    start = time.process_time()
    carry()
    return samples / (time.process_time() - start)


def transmit(phy: OfdmPhy, frames: list[bytes]) -> None:
    """Send frames through GNU Radio's block."""
    box, block, sink = native().frame_box(), phy.transmitter(), blocks.null_sink(gr.sizeof_gr_complex)
    top = gr.top_block()
    top.connect(block, sink)
    top.msg_connect((box, "send"), (block, "frames"))
    top.start()
    for frame in frames:
        box.send(frame)
    while sink.nitems_read(0) < sum(phy.frame_samples(len(frame)) for frame in frames):
        time.sleep(0.001)
    top.stop()
    top.wait()


def receiving(phy: OfdmPhy, liquids: Liquids, theirs: Samples, ours: Samples) -> dict[str, Work]:
    """Return the receivers: liquid's samples differ from ours by the header."""
    demodulator, receiver = Demodulator(phy), phy.receiver()
    source = blocks.vector_source_c(ours.tolist(), False)

    def pieces(samples: Samples) -> list[Samples]:
        return [samples[at : at + CHUNK] for at in range(0, len(samples), CHUNK)]

    def run() -> None:
        source.rewind()
        top = gr.top_block()
        top.connect(source, receiver)
        top.run()

    return {
        "liquid": (lambda: [liquids.heard(piece) for piece in pieces(theirs)], len(theirs)),
        "Python": (lambda: [demodulator.feed(piece) for piece in pieces(ours)], len(ours)),
        "GNU Radio": (run, len(ours)),
    }


def works(modulation: str, fec: str, ten_percent_db: float) -> dict[str, dict[str, Work]]:
    """Return what is measured of one mode."""
    rng = np.random.default_rng(1)
    phy, liquids = OfdmPhy(2e6, modulation=modulation, fec=fec), Liquids(modulation, fec)
    modulator = Modulator(phy)
    frames = [rng.bytes(FRAME_BYTES) for _ in range(FRAMES)]
    theirs, ours = ([link.modulate(frame) for frame in frames] for link in (liquids, modulator))

    def heard(above_db: float) -> list[Samples]:
        sides = (theirs, liquids.rms), (ours, phy.rms)
        return [air(bursts, rng, rms=rms, snr_db=ten_percent_db + above_db).samples for bursts, rms in sides]

    sent = sum(map(len, ours))
    return {
        "transmit": {
            "liquid": (lambda: [liquids.modulate(frame) for frame in frames], sum(map(len, theirs))),
            "Python": (lambda: [modulator.modulate(frame) for frame in frames], sent),
            "GNU Radio": (lambda: transmit(phy, frames), sent),
        },
        "receive busy": receiving(phy, liquids, *heard(BUSY_DB)),
        "receive damaged": receiving(phy, liquids, *heard(DAMAGED_DB)),
    }


def idle() -> dict[str, Work]:
    """Return receivers of noise."""
    noise = np.random.default_rng(2).standard_normal(2 * IDLE_SAMPLES, np.float32).view(np.complex64)
    return receiving(OfdmPhy(2e6), Liquids("qpsk", "none"), noise, noise)


def main() -> None:
    """Measure and print."""
    options = parser(__doc__, seed=None, repetitions=5).parse_args()
    gr.logging().set_default_level(gr.log_levels.warn)
    results = Results(options, "vusrp and usrp", "PHY ofdm alone, median Msps of one core", COLUMNS)

    def measure(name: str, kinds: dict[str, Work]) -> None:
        rates = {
            kind: statistics.median(rate(work) for _ in range(options.repetitions)) for kind, work in kinds.items()
        }
        results.add(work=name, core_share=RATE_SPS / rates["GNU Radio"], **rates)

    for modulation, fec, ten_percent_db in MODES:
        for side, kinds in works(modulation, fec, ten_percent_db).items():
            measure(f"{side}, {modulation}/{fec}", kinds)
    measure("receive idle", idle())
    results.finish()


if __name__ == "__main__":
    main()
