"""Two programs over UHD, each a process of its own: `send` bursts of a tone, and `record SAMPLES FILE`.

Programs of GNU Radio alone, as its users write them, on devices TX and RX of the air `two`.
"""

import sys

import numpy as np
import pmt
from gnuradio import blocks, gr, pdu, uhd

RATE, CARRIER = 1e6, 2.45e9


def send() -> gr.top_block:
    """A tone of 2 ms every 20 ms, without end."""
    flow = gr.top_block()
    sink = uhd.usrp_sink("type=vusrp,air=two,serial=TX", uhd.stream_args("fc32"), "length")
    sink.set_samp_rate(RATE)
    sink.set_center_freq(CARRIER)
    sink.set_gain(60)
    tone = (0.3 * np.exp(2j * np.pi * 0.1 * np.arange(2000))).tolist()
    messages = blocks.message_strobe(pmt.cons(pmt.make_dict(), pmt.init_c32vector(len(tone), tone)), 20)
    stream = pdu.pdu_to_tagged_stream(gr.types.complex_t, "length")
    flow.msg_connect((messages, "strobe"), (stream, "pdus"))
    flow.connect(stream, sink)
    return flow


def record(samples: int, path: str) -> gr.top_block:
    """What the receiver hears."""
    flow = gr.top_block()
    source = uhd.usrp_source("type=vusrp,air=two,serial=RX", uhd.stream_args("fc32"))
    source.set_samp_rate(RATE)
    source.set_center_freq(CARRIER)
    source.set_gain(40)
    flow.connect(source, blocks.head(gr.sizeof_gr_complex, samples), blocks.file_sink(gr.sizeof_gr_complex, path))
    return flow


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["send"]:
            send().run()
        case ["record", samples, path]:
            record(int(samples), path).run()
