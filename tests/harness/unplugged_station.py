"""A station whose radio is lost after a while; in a run it takes the place of `testbed.live.station_process`.

The environment variable UNPLUGGED says how: `silent`, as an Ethernet device whose cable is pulled: gr-uhd waits for
ever; or `thrown`, as a USB device: UHD throws in `recv`, and again when the stream is to be stopped.
"""

import os
import sys
from threading import Event
from typing import Any

import numpy as np
from gnuradio import gr, uhd

from flowgraphs.phy import Received
from flowgraphs.transceiver import Transceiver
from hosts.jsonlines import run_child
from hosts.messages import StationConfig
from testbed.live import station_process, usrp_radio

#: frames that the station hears before
LOST_AFTER = 100


class Thrower(gr.sync_block):
    """Takes samples until its device is gone."""

    def __init__(self) -> None:
        gr.sync_block.__init__(self, "thrower", in_sig=[np.complex64], out_sig=None)
        self.gone = Event()

    def work(self, input_items: Any, output_items: Any) -> int:
        if self.gone.is_set():
            raise RuntimeError("LIBUSB_TRANSFER_NO_DEVICE")
        return len(input_items[0])

    def stop(self) -> bool:
        if self.gone.is_set():
            raise RuntimeError("no response packet")
        return True


class Unplugged(Transceiver):
    """Loses its device."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._thrower = Thrower()
        self._heard = 0
        self.connect(self.rx.block, self._thrower)

    def receive(self) -> Received | None:
        received = super().receive()
        self._heard += received is not None
        if self._heard == LOST_AFTER:
            self._heard += 1
            self._lose()
        return received

    def _lose(self) -> None:
        if os.environ["UNPLUGGED"] == "thrown":
            self._thrower.gone.set()
        else:
            self.rx.block.issue_stream_cmd(uhd.stream_cmd(uhd.stream_mode.STREAM_MODE_STOP_CONTINUOUS))


if __name__ == "__main__":
    setattr(usrp_radio, "Transceiver", Unplugged)  # noqa: B010 - the module does not export the name
    sys.exit(run_child(StationConfig, station_process.serve))
