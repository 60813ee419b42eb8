"""The radio of the tiers `vusrp` and `usrp`: frames as IQ samples through a USRP, virtual or real.

Rules: what the scenario models (rate, delay, errors) is applied to a frame before it is transmitted, as on every tier,
and the radio adds what it does; the time a frame spends on the air counts towards the modelled delay. At most two
frames are in the radio at a time. A gap in the received samples and samples sent too late count as late events.

Left out: who heard what. A receiver knows of a frame it has missed only by the sequence numbers of the next one.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gnuradio import gr

from channel.hop import Hop
from flowgraphs.frontend import RadioSettings
from flowgraphs.gain import GainControl
from flowgraphs.phy import Phy, Received
from flowgraphs.phys import make_phy
from flowgraphs.transceiver import Transceiver
from testbed.errors import FadelabError
from testbed.hop_radio import HopRadio
from testbed.medium import frame_ns
from testbed.scenario import SIDES, Scenario, Side, other

#: frames between this station and the antenna: one on the air, one behind it
_IN_RADIO = 2
#: from handing over a frame to its first sample on the air, as long as the radio is idle
LEAD_NS = 2_000_000
_LEVEL_INTERVAL_NS = 50_000_000


class OnAirRadio(HopRadio):
    """Carries frames through `transceiver`, which is running.

    `heard(received)` is called for every frame the receiver has decoded, damaged ones included. With `automatic_gain`
    the receiver's gain follows what is heard (flowgraphs/gain.py).
    """

    def __init__(
        self,
        hop: Hop[bytes],
        transceiver: Transceiver,
        *,
        max_frame_bytes: int,
        late_bound_ns: int,
        automatic_gain: bool = False,
        heard: Callable[[Received], None] = lambda received: None,
    ) -> None:
        super().__init__(hop, max_frame_bytes=max_frame_bytes, late_bound_ns=late_bound_ns)
        self._transceiver = transceiver
        receiver = transceiver.rx
        self._gain = GainControl(receiver.gain_db, *receiver.gain_range_db) if automatic_gain else None
        self._heard = heard
        #: when the frames in the radio will have left it
        self._leaves_at: deque[int] = deque()
        self._now = 0
        self._level_at = 0
        self._late_samples = 0

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when a frame has been heard."""
        return self._transceiver.fileno()

    def has_room(self) -> bool:
        """Whether the MAC buffer takes a frame of the largest size and none waits for the radio."""
        return not self._waiting and super().has_room()

    def receive(self) -> bytes | None:
        """Return the next frame that was heard, damaged or not, or None."""
        received = self._transceiver.receive()
        if received is None:
            return None
        self._heard(received)
        if self._gain is not None and received.rssi_db is not None:
            self._set_gain(self._gain.handle_frame(received.rssi_db, self._now))
        return received.payload

    def next_deadline(self) -> int | None:
        """When a frame is due, the radio can take one, or the received level is to be looked at."""
        at = self._level_at
        hop_at = self.hop.next_deadline()
        if hop_at is not None and hop_at < at:
            at = hop_at
        if self._waiting and self._leaves_at[0] < at:
            at = self._leaves_at[0]
        return at

    def handle_deadline(self, now: int) -> None:
        """Transmit what is due, and look after the receiver."""
        self._now = now
        super().handle_deadline(now)
        if now >= self._level_at:
            self._level_at = now + _LEVEL_INTERVAL_NS
            self._look_after(now)

    def _carry(self, now: int) -> None:
        leaves_at, waiting = self._leaves_at, self._waiting
        while leaves_at and leaves_at[0] <= now:
            leaves_at.popleft()
        while waiting and len(leaves_at) < _IN_RADIO:
            frame = waiting.popleft()
            self._transceiver.send(frame)
            starts_at = max(leaves_at[-1] if leaves_at else 0, now + LEAD_NS)
            leaves_at.append(starts_at + self._transceiver.airtime_ns(len(frame)))

    def _look_after(self, now: int) -> None:
        """Count what the device could not do in time, and keep the receiver's level in range."""
        counters = self._transceiver.counters()
        late = counters.overflows + counters.underflows
        for _ in range(late - self._late_samples):
            self._note(self._late_bound_ns + 1)
        self._late_samples = late
        if self._gain is not None:
            self._set_gain(self._gain.handle_peak(self._transceiver.peak_dbfs(), now))

    def _set_gain(self, gain_db: float | None) -> None:
        if gain_db is not None:
            self._transceiver.rx.set_gain(gain_db)


@contextmanager
def open_transceiver(scenario: Scenario, side: Side, device: str, recording: Path | None) -> Iterator[Transceiver]:
    """Run the radio of the station that transmits on `side`; with `recording`, keep what it receives there.

    Raises FadelabError, FrontEndError or PhyError in one line.
    """
    radio = scenario.radio
    # else every block says how large its buffers are
    gr.logging().set_default_level(gr.log_levels.warn)
    options = radio.phy_options(other(side))
    phy = make_phy(radio.phy, rate_sps=radio.rate_sps, **options)
    check_capacity(scenario, phy)
    settings = RadioSettings(
        args=device,
        rate_sps=radio.rate_sps,
        tx_hz=radio.carrier_hz(side),
        rx_hz=radio.carrier_hz(other(side)),
        tx_gain_db=radio.tx_gain_db,
        rx_gain_db=None if radio.rx_gain_db == "auto" else radio.rx_gain_db,
    )
    transceiver = Transceiver(settings, phy, record=recording, phy_options=options)
    transceiver.start()
    try:
        yield transceiver
    finally:
        transceiver.close()


def check_capacity(scenario: Scenario, phy: Phy) -> None:
    """Raise FadelabError unless the PHY carries full frames at the rates the scenario asks for."""
    nbytes, rate_sps = scenario.max_frame_bytes, scenario.radio.rate_sps
    if nbytes > phy.max_frame_bytes:
        raise FadelabError(
            f"radio.phy {phy.describe()} carries frames of {phy.max_frame_bytes} bytes, not {nbytes}: lower mtu"
        )
    airtime_ns = phy.frame_samples(nbytes) * 1e9 / rate_sps
    for side in SIDES:
        direction = scenario.channel.direction(side)
        wanted_ns = frame_ns(direction, nbytes)
        if airtime_ns > wanted_ns:
            enough_sps = math.ceil(rate_sps * airtime_ns / wanted_ns / 1e4) * 1e4
            raise FadelabError(
                f"radio: {phy.describe()} at {rate_sps / 1e6:g} Msps carries {nbytes * 8e3 / airtime_ns:.2f} Mbit/s in "
                f"frames of {nbytes} bytes, less than channel.rate_bps {direction.rate_bps} ({side}): raise "
                f"radio.rate_sps to {enough_sps:.6g}, take a denser mode or lower the rate"
            )


def radio_delay_ns(transceiver: Transceiver, nbytes: int) -> int:
    """How long a frame takes from here to the other station's link layer, at the least."""
    return LEAD_NS + transceiver.airtime_ns(nbytes)
