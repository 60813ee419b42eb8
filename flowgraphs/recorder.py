"""Records the received samples of a USRP to SigMF.

Rules kept: an interrupted recording keeps its samples, with correct metadata; a radio that stops delivering samples is
an error, not a short recording.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from gnuradio import blocks, gr

from flowgraphs.frontend import RadioSettings, Receiver, end, start_in_real_time, wait_for
from flowgraphs.recording import RecordingError, data_path, finish


def record(
    settings: RadioSettings, target: Path, seconds: float, progress: Callable[[float], None] = lambda share: None
) -> Path:
    """Record `seconds` of samples into `target`.sigmf-data and .sigmf-meta; return the latter's path.

    `progress(share)` is called with 0 to 1. Ctrl-C ends the recording early and is passed on. Raises FrontEndError when
    the radio does not answer or stops, RecordingError when the files cannot be written.
    """
    receiver = Receiver(settings)
    wanted = round(seconds * settings.rate_sps)
    data = data_path(target)
    try:
        data.open("wb").close()
    except OSError as error:
        raise RecordingError(f"{data}: {error.strerror}; choose another place") from None
    started = datetime.now(UTC)
    top = gr.top_block("recorder", catch_exceptions=False)
    sink = blocks.file_sink(gr.sizeof_gr_complex, str(data), False)
    gaps = blocks.tag_debug(gr.sizeof_gr_complex, "gaps", "rx_time")
    gaps.set_display(False)
    head = blocks.head(gr.sizeof_gr_complex, wanted)
    top.connect(receiver.block, head, sink)
    top.connect(head, gaps)
    start_in_real_time(top)
    try:
        stall = f"USRP {settings.args!r}: no samples"
        wait_for(sink, wanted, progress, stall, ": check that it is still connected")
    finally:
        # before the end of the flowgraph, in which gr-uhd talks to the device: a lost one may abort the process
        sink.close()
        meta = finish(
            target,
            rate_sps=settings.rate_sps,
            frequency_hz=settings.rx_hz,
            started=started,
            hardware=f"{settings.args}, gain {receiver.gain_db:g} dB",
            gaps=max(gaps.num_tags() - 1, 0),
        )
        end(top)
        receiver.close()
    return meta
