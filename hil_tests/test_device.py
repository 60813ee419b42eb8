"""What a device could not do in time is counted."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pmt
import pytest
from gnuradio import gr

from flowgraphs.phys.ofdm.modem import OfdmPhy
from hil_tests.bench import RATE_SPS, Bench
from tests.harness.waiting import wait_for

pytestmark = pytest.mark.radio


#: of a burst, those that are given: one call of `work` and one packet have them all, so it runs dry once
GIVEN_SAMPLES = 2_000


class _Stutterer(gr.sync_block):
    """Promises a burst and gives half of it."""

    def __init__(self) -> None:
        gr.sync_block.__init__(self, "stutterer", in_sig=None, out_sig=[np.complex64])
        self._left = 0
        self.message_port_register_in(pmt.intern("frames"))
        self.set_msg_handler(pmt.intern("frames"), self._begin)

    def _begin(self, pdu: object) -> None:
        self._left = GIVEN_SAMPLES

    def work(self, input_items: object, output_items: list[Any]) -> int:
        if self._left == GIVEN_SAMPLES:
            promised = pmt.from_long(2 * GIVEN_SAMPLES)
            self.add_item_tag(0, self.nitems_written(0), pmt.intern("packet_len"), promised)
        n = min(len(output_items[0]), self._left)
        output_items[0][:n] = 0.1
        self._left -= n
        return n


@dataclass(frozen=True)
class _StutteringPhy(OfdmPhy):
    def transmitter(self) -> Any:
        return _Stutterer()


def test_a_burst_that_runs_dry_is_counted(bench: Bench) -> None:
    with bench.join(_StutteringPhy(RATE_SPS)) as pair:
        assert pair.a.counters().underflows == 0
        pair.a.send(b"a frame")
        assert wait_for(lambda: pair.a.counters().underflows) == 1
