"""Transmits a SigMF recording through a USRP."""

import time
from collections.abc import Callable

from gnuradio import blocks, gr

from flowgraphs.frontend import BURST_TAG, RadioSettings, Transmitter, end, wait_for
from flowgraphs.recording import Recording

#: time for a device to transmit its buffer after the last sample
_DRAIN_S = 0.5


def transmit(
    recording: Recording, settings: RadioSettings, progress: Callable[[float], None] = lambda share: None
) -> None:
    """Transmit a whole recording as one burst, at the rate and carrier of `settings`.

    `progress(share)` is called with 0 to 1. Raises FrontEndError when the radio does not answer or stops.
    """
    transmitter = Transmitter(settings)
    total = len(recording)
    top = gr.top_block("replayer", catch_exceptions=False)
    if recording.datatype == "cf32_le":
        source = blocks.file_source(gr.sizeof_gr_complex, str(recording.path), False)
    else:
        shorts = blocks.file_source(2 * gr.sizeof_short, str(recording.path), False)
        source = blocks.interleaved_short_to_complex(True, False, 32767.0)
        top.connect(shorts, source)
    burst = blocks.stream_to_tagged_stream(gr.sizeof_gr_complex, 1, total, BURST_TAG)
    top.connect(source, burst, transmitter.block)
    top.start()
    try:
        wait_for(transmitter.block, total, progress, f"USRP {settings.args!r}: takes no samples")
        time.sleep(_DRAIN_S)
    finally:
        end(top)
        transmitter.close()
