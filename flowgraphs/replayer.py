"""Transmits a SigMF recording through a USRP.

The burst begins at a time of the device. One that begins at once runs dry when the host is busy after the first packet,
because the device's buffer is still empty. Its end is that which the device acknowledges.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pmt
from gnuradio import blocks, gr

from flowgraphs.frontend import BURST_TAG, RadioSettings, Transmitter, end, start_in_real_time, time_value, wait_for
from flowgraphs.native import native
from flowgraphs.phy import Samples
from flowgraphs.recording import Recording

#: from the start of the flowgraph to the first sample: buffers fill meanwhile
_LEAD_S = 0.2
#: samples wait for the device for so long, as far as memory allows
_AHEAD_S = 0.1
_MOST_AHEAD = 1 << 22
#: for a device to acknowledge the end of the burst after its last sample
_DRAIN_S = 0.5
_POLL_S = 0.02


class Sent(NamedTuple):
    """What a device has said of a burst."""

    #: underflows, and its other words for samples that came too late
    late: int
    #: whether it has said that the burst is over; without that nobody knows what of it was on the air
    acknowledged: bool


class _Burst(gr.sync_block):
    """Passes on samples, of which the first is marked as the start of a burst, at a time of the device."""

    def __init__(self, total: int, at_s: float) -> None:
        gr.sync_block.__init__(self, "burst", in_sig=[np.complex64], out_sig=[np.complex64])
        self._tags = {BURST_TAG: pmt.from_long(total), "tx_time": time_value(at_s)}

    def work(self, input_items: list[Samples], output_items: list[Samples]) -> int:
        output_items[0][:] = input_items[0]
        for key, value in self._tags.items():
            self.add_item_tag(0, 0, pmt.intern(key), value)
        self._tags = {}
        return len(output_items[0])


def transmit(
    recording: Recording, settings: RadioSettings, progress: Callable[[float], None] = lambda share: None
) -> Sent:
    """Transmit a whole recording as one burst, at the rate and carrier of `settings`.

    `progress(share)` is called with 0 to 1. Raises FrontEndError when the radio does not answer or stops.
    """
    ours = native()
    transmitter = Transmitter(settings)
    # of late samples it would log, on stdout, what is returned here
    transmitter.block.set_log_level("crit")
    total = len(recording)
    top = gr.top_block("replayer", catch_exceptions=False)
    if recording.datatype == "cf32_le":
        source = blocks.file_source(gr.sizeof_gr_complex, str(recording.path), False)
    else:
        shorts = blocks.file_source(2 * gr.sizeof_short, str(recording.path), False)
        source = blocks.interleaved_short_to_complex(True, False, 32767.0)
        top.connect(shorts, source)
    burst = _Burst(total, transmitter.now_s() + _LEAD_S)
    head, tail = settings.guard()
    guard = ours.burst_guard(head, tail)
    guard.set_min_output_buffer(min(round(_AHEAD_S * settings.rate_sps), _MOST_AHEAD))
    top.connect(source, burst, guard, transmitter.block)
    box = ours.frame_box()
    top.msg_connect((transmitter.block, "async_msgs"), (box, "events"))
    ends_at = time.monotonic() + _LEAD_S + total / settings.rate_sps
    start_in_real_time(top)
    try:
        wait_for(transmitter.block, head + total + tail, progress, f"USRP {settings.args!r}: takes no samples")
        ends_at = max(ends_at, time.monotonic()) + _DRAIN_S
        while not box.acknowledged and time.monotonic() < ends_at:
            time.sleep(_POLL_S)
        return Sent(box.late, box.acknowledged > 0)
    finally:
        end(top)
        transmitter.close()
        box.close()
