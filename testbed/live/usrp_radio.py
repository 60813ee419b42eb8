"""The radio of the tiers `vusrp` and `usrp`: frames as IQ samples through a USRP, virtual or real.

Rules: the scenario's rate, delay and errors are applied to a frame before it is transmitted, as on every tier; the
radio's own losses come on top. Airtime counts towards the modelled delay. The radio holds two frames at a time, or as
many as last a few milliseconds. Where the device's acknowledgements tell that bursts take longer than their airtime,
the frames in it are given more time to leave, so that its backlog does not grow. A gap in the received samples and
samples sent too late count as late events, and the time of lost samples as late time.

Left out: the fate of a frame on the air. A receiver notices a missed frame only by the sequence number of the next.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from gnuradio import gr
from typing_extensions import override

from channel.hop import Hop
from common.sides import SIDES, Side, other
from flowgraphs.failures import park_failed_threads
from flowgraphs.frontend import LostRadioError, RadioSettings
from flowgraphs.gain import GainControl
from flowgraphs.phy import Phy
from flowgraphs.phys import make_phy
from flowgraphs.transceiver import Transceiver, load
from linklayer.adaptive.mode_report import REPORT_BYTES
from testbed.errors import FadelabError
from testbed.live import grid
from testbed.live.hop_radio import HopRadio, RadioMessage
from testbed.live.media import RadioContext
from testbed.live.mode_control import ModeControl
from testbed.live.receiver_stats import ReceiverStats
from testbed.live.receiver_view import ReceiverView
from testbed.scenario.run_plan import Plan

#: frames between this station and the antenna, at least: one on the air, one behind it
_IN_RADIO = 2
#: from handing over a frame to its first sample on the air, when the radio is idle
LEAD_NS = 2_000_000
#: the radio gets the next short frames when it has work for so long, which leaves as much time to be late
_LOW_NS = 2 * LEAD_NS
#: and then more than two frames, as long as they are work for no longer
_HIGH_NS = 3 * LEAD_NS
#: an acknowledgement that has not come so long after a frame has left means that it has not left
_BEHIND_NS = 20_000_000
#: or, even later, that the message was lost
_UNHEARD_NS = 100_000_000
#: the frames in a device that is behind get so much more time, less than it is behind, lest it run dry
_MORE_NS = 2_500_000
_LEVEL_INTERVAL_NS = 50_000_000
#: the virtual USRP's default: its sample rates are whole fractions of it
_MASTER_CLOCK_HZ = 200_000_000


class OnAirRadio(HopRadio):
    """Carries frames through `transceiver`, which is running.

    `stats` takes every decoded frame, damaged ones included; `view` makes views of the receiver. With `automatic_gain`
    the receiver's gain follows the level of the signal (flowgraphs/gain.py). `modes` chooses each frame's mode; without
    it all have the transceiver's.
    """

    def __init__(
        self,
        hop: Hop[bytes],
        transceiver: Transceiver,
        *,
        max_frame_bytes: int,
        late_bound_ns: int,
        automatic_gain: bool = False,
        stats: ReceiverStats | None = None,
        view: ReceiverView | None = None,
        modes: ModeControl | None = None,
    ) -> None:
        super().__init__(hop, max_frame_bytes=max_frame_bytes, late_bound_ns=late_bound_ns)
        self._transceiver = transceiver
        receiver = transceiver.rx
        self._gain = GainControl(receiver.gain_db, *receiver.gain_range_db) if automatic_gain else None
        self._stats, self._view = stats, view
        self._modes = modes
        #: times at which the frames in the radio leave it
        self._leaves_at: deque[int] = deque()
        #: of frames that the device has not acknowledged: the same less the time that was given until then, and when
        #: the acknowledgement counts as lost
        self._unacknowledged: deque[tuple[int, int]] = deque()
        self._acknowledged = 0
        #: time that frames have been given beyond their airtimes, all together
        self._given_ns = 0
        #: by the frame's bytes
        self._airtimes_ns: dict[int, int] = {}
        self._now = 0
        self._level_at = 0
        self._late_samples = 0
        self._lost_ns = 0

    @override
    def begin(self, epoch: int) -> None:
        super().begin(epoch)
        if self._stats is not None:
            self._stats.begin(epoch)

    @override
    def run_in_real_time(self, priority: int) -> None:
        self._transceiver.run_in_real_time(priority)

    @override
    def about(self) -> Mapping[str, Any]:
        return self._transceiver.about()

    @property
    @override
    def unheard(self) -> int:
        return 0 if self._stats is None else self._stats.corrupted + self._stats.missed

    @override
    def watch(self, watched: bool) -> None:
        if self._view is not None:
            self._view.watched = watched

    @override
    def take_records(self, now: int, time_ns: int) -> Iterator[RadioMessage]:
        if self._stats is not None:
            yield replace(
                self._stats.take_record(time_ns),
                rx_gain_db=self._transceiver.rx.gain_db,
                overflows=self._transceiver.counters().overflows,
            )
        if self._view is not None and (view := self._view.poll(now, time_ns)) is not None:
            yield view

    def fileno(self) -> int:
        return self._transceiver.fileno()

    def has_room(self) -> bool:
        """Whether the MAC buffer takes a frame of the largest size and no frame waits for the radio."""
        return not self._waiting and super().has_room()

    def receive(self) -> bytes | None:
        """Return the next received frame, damaged or not, or None."""
        received = self._transceiver.receive()
        if received is None:
            return None
        missed = 0
        if self._stats is not None:
            missed = self._stats.handle_frame(received, self._transceiver.lost_before(received))
        if self._gain is not None and received.rssi_db is not None:
            gain_db = self._gain.handle_frame(
                received.rssi_db, received.snr_db, self._now, missed=missed, damaged=not received.crc_ok
            )
            self._set_gain(gain_db)
        return received.payload if self._modes is None else self._modes.take(received, self._now)

    def next_deadline(self) -> int | None:
        """When a frame is due, the radio can take one, or the receiver's level is to be checked."""
        at = self._level_at
        hop_at = self._hop_deadline()
        if hop_at is not None and hop_at < at:
            at = hop_at
        if self._waiting and (carried_at := self._carried_at()) is not None:
            at = min(at, carried_at)
        return at

    def _carried_at(self) -> int | None:
        """When the first waiting frame can go; None: once the descriptor is readable."""
        leaves_at = self._leaves_at
        fits_at = leaves_at[-1] + self._airtime_ns(len(self._waiting[0])) - _HIGH_NS
        return min(leaves_at[-_IN_RADIO], max(fits_at, leaves_at[-1] - _LOW_NS))

    def handle_deadline(self, now: int) -> None:
        """Transmit frames that are due, and check the receiver."""
        self._now = now
        super().handle_deadline(now)
        if now >= self._level_at:
            self._level_at = now + _LEVEL_INTERVAL_NS
            self._check_receiver(now)

    def _carry(self, now: int) -> None:
        self._follow_device(now)
        leaves_at, waiting = self._leaves_at, self._waiting
        while leaves_at and leaves_at[0] <= now:
            leaves_at.popleft()
        while waiting:
            free_at = leaves_at[-1] if leaves_at else now
            airtime_ns = self._airtime_ns(len(waiting[0]))
            if len(leaves_at) >= _IN_RADIO and free_at + airtime_ns > now + _HIGH_NS:
                break
            self._launch(waiting.popleft(), now)
            leaves_at.append(max(free_at, now + LEAD_NS) + airtime_ns)
            self._unacknowledged.append((leaves_at[-1] - self._given_ns, leaves_at[-1] + _UNHEARD_NS))

    def _follow_device(self, now: int) -> None:
        """Give the frames in the radio more time if one of them should have left long ago."""
        acknowledged, unacknowledged = self._transceiver.acknowledged(), self._unacknowledged
        for _ in range(min(acknowledged - self._acknowledged, len(unacknowledged))):
            unacknowledged.popleft()
        self._acknowledged = acknowledged
        while unacknowledged and unacknowledged[0][1] < now:
            unacknowledged.popleft()
        # a device that acknowledges nothing cannot be followed
        if acknowledged and unacknowledged and unacknowledged[0][0] + self._given_ns < now - _BEHIND_NS:
            self._given_ns += _MORE_NS
            self._leaves_at = deque(at + _MORE_NS for at in self._leaves_at)

    def _launch(self, frame: bytes, now: int) -> None:
        """Give a frame to the transceiver."""
        if self._modes is None:
            self._transceiver.send(frame)
        else:
            self._modes.send(frame, now)

    def _airtime_ns(self, nbytes: int) -> int:
        """Return the airtime of a frame that goes now."""
        if self._modes is not None:
            return self._modes.airtime_ns(nbytes, self._now)
        airtime_ns = self._airtimes_ns.get(nbytes)
        if airtime_ns is None:
            airtime_ns = self._airtimes_ns[nbytes] = self._transceiver.airtime_ns(nbytes)
        return airtime_ns

    def _check_receiver(self, now: int) -> None:
        """Count overflows and underflows as late events, and keep the receiver's level in range.

        Raises LostRadioError.
        """
        self._transceiver.check()
        counters = self._transceiver.counters()
        late = counters.overflows + counters.underflows
        lost_ns, self._lost_ns = counters.lost_ns - self._lost_ns, counters.lost_ns
        self.lateness.lost_ns += lost_ns
        for _ in range(late - self._late_samples):
            self._note(max(self._late_bound_ns + 1, lost_ns))
        self._late_samples = late
        if self._gain is not None:
            self._set_gain(self._gain.handle_peak(self._transceiver.peak_dbfs(), now))

    def _set_gain(self, gain_db: float | None) -> None:
        if gain_db is not None:
            self._transceiver.rx.set_gain(gain_db)


def make_on_air_radio(context: RadioContext, make: Callable[..., OnAirRadio] = OnAirRadio) -> OnAirRadio:
    """Return the running radio of a station, made by `make`.

    Raises FadelabError, FrontEndError or PhyError in one line.
    """
    plan, side, far = context.plan, context.side, other(context.side)
    recording = context.folder / f"iq-{far}" if plan.radio.record else None
    transceiver = context.stack.enter_context(open_transceiver(plan, side, context.wiring["device"], recording))
    return make(
        # airtime counts towards the modelled delay
        context.make_hop(earlier_ns=radio_delay_ns(transceiver, frame_bytes_of(plan))),
        transceiver,
        max_frame_bytes=plan.max_frame_bytes,
        late_bound_ns=plan.late_bound_ns,
        automatic_gain=plan.radio.rx_gain_db is None,
        stats=ReceiverStats(far, plan.radio.rate_sps, context.open_trace(far)),
        view=ReceiverView(far, transceiver),
        modes=ModeControl(transceiver, context.frame_cost, time.monotonic_ns()) if plan.radio.chooses_modes else None,
    )


@contextmanager
def open_transceiver(plan: Plan, side: Side, device: str, recording: Path | None) -> Iterator[Transceiver]:
    """Run the radio of the station that transmits on `side`; `recording`: a file for the received samples.

    Raises FadelabError, FrontEndError or PhyError in one line.
    """
    radio = plan.radio
    # else every block logs its buffer sizes
    gr.logging().set_default_level(gr.log_levels.warn)
    options = radio.phy_options[other(side)]
    phy = phy_of(plan, other(side))
    settings = settings_of(plan, side, device)
    check_capacity(plan, phy, sum(settings.guard()))
    seed = plan.stations[side].rng("access").getrandbits(32)
    if plan.clock == "virtual":
        # a device has a clock, oscillators and noise that begin with it
        load()
        grid.pause()
    transceiver = Transceiver(settings, phy, record=recording, phy_options=options, access=radio.access, seed=seed)
    park_failed_threads()
    if plan.clock == "virtual":
        grid.pause()
    transceiver.start()
    end = transceiver.close
    try:
        yield transceiver
    except LostRadioError:
        end = transceiver.abandon
        raise
    finally:
        end()


def phy_of(plan: Plan, receiving: Side) -> Phy:
    """Return the PHY of the station that receives on a side; where modes are chosen, in the fastest.

    Raises FadelabError or PhyError in one line.
    """
    radio = plan.radio
    phy = make_phy(radio.phy, rate_sps=radio.rate_sps, **radio.phy_options[receiving])
    if not radio.chooses_modes:
        return phy
    modes = phy.modes()
    if not modes:
        raise FadelabError(f"radio.modes: PHY {phy.name} has no modes to choose among: set radio.modes to off")
    return modes[-1].phy


def frame_bytes_of(plan: Plan) -> int:
    """Return the size of the largest frame on the air, with the report behind it where modes are chosen."""
    return plan.max_frame_bytes + (REPORT_BYTES if plan.radio.chooses_modes else 0)


def settings_of(plan: Plan, side: Side, device: str) -> RadioSettings:
    """Return the settings of the radio that transmits on `side`."""
    radio = plan.radio
    return RadioSettings(
        args=device,
        rate_sps=radio.rate_sps,
        tx_hz=radio.carriers_hz[side],
        rx_hz=radio.carriers_hz[other(side)],
        tx_gain_db=radio.tx_gain_db,
        rx_gain_db=radio.rx_gain_db,
        options=radio.front_end,
        **({} if radio.access is None else {"lot_s": radio.access.lot_s}),
    )


def check_capacity(plan: Plan, phy: Phy, guard: int = 0) -> None:
    """Raise FadelabError, with all necessary changes, unless the PHY carries full frames at their rates.

    `guard`: samples of silence that belong to each burst.
    """
    nbytes, rate_sps = frame_bytes_of(plan), plan.radio.rate_sps
    wrong, changes = [], []
    if nbytes > phy.max_frame_bytes:
        wrong.append(f"carries frames of {phy.max_frame_bytes} bytes, not {nbytes}")
        changes.append(f"mtu to {plan.mtu_bytes - (nbytes - phy.max_frame_bytes)}")
        nbytes = phy.max_frame_bytes
    slow = {side: short for side in SIDES if (short := _slowness(plan, side, phy, nbytes, guard)) > 1}
    if slow:
        carried_bps = nbytes * 8 * rate_sps / (phy.frame_samples(nbytes) + guard)
        rates_bps = {side: plan.stations[side].hop.rate_bps for side in slow}
        asked = " and ".join(f"{bps} ({side})" for side, bps in rates_bps.items())
        wrong.append(
            f"at {rate_sps / 1e6:g} Msps carries {carried_bps / 1e6:.2f} Mbit/s in frames of {nbytes} bytes, "
            f"less than channel.rate_bps {asked}"
        )
        *others, last = _remedies(plan, phy, nbytes, slow, guard)
        changes.append(f"{', '.join(others)} or {last}" if others else last)
    if wrong:
        raise FadelabError(f"radio: {phy.describe()} {', and '.join(wrong)}: set {', and '.join(changes)}")


def _slowness(plan: Plan, side: Side, phy: Phy, nbytes: int, guard: int) -> float:
    """Return a frame's airtime over the rest of its time at the direction's rate; more than 1 is too slow."""
    airtime_ns, guard_ns = (samples * 1e9 / plan.radio.rate_sps for samples in (phy.frame_samples(nbytes), guard))
    return airtime_ns / max(plan.stations[side].hop.frame_ns(nbytes) - guard_ns, 1.0)


def _remedies(plan: Plan, phy: Phy, nbytes: int, slow: Mapping[Side, float], guard: int) -> list[str]:
    """Return the changes, each sufficient alone, that make the PHY fast enough; at least one."""
    radio, remedies = plan.radio, []
    for option, value, denser in phy.denser():
        if all(_slowness(plan, side, denser, nbytes, guard) <= 1 for side in slow):
            remedies.append(f"radio.{option} to {value}")
            break
    needed_sps = radio.rate_sps * max(slow.values())
    if radio.devices is None:
        decimations = range(int(_MASTER_CLOCK_HZ / needed_sps), 0, -1)
        # whole numbers of kHz
        rates_sps = [_MASTER_CLOCK_HZ // n for n in decimations if _MASTER_CLOCK_HZ // 1000 % n == 0]
        if rates_sps and rates_sps[0] <= radio.most_sps:
            remedies.append(f"radio.rate_sps to {rates_sps[0]}")
    elif needed_sps <= radio.most_sps:
        remedies.append(f"radio.rate_sps to a rate of the device from {math.ceil(needed_sps)} on")
    rates_bps = {side: plan.stations[side].hop.rate_bps for side in slow}
    if len(slow) == len(SIDES) and len(set(rates_bps.values())) == 1:
        lower = {"channel.rate_bps": _floor(rates_bps["up"] / slow["up"])}
    else:
        lower = {f"channel.{side}.rate_bps": _floor(bps / slow[side]) for side, bps in rates_bps.items()}
    return [*remedies, " and ".join(f"{key} to {bps}" for key, bps in lower.items())]


def _floor(bps: float) -> int:
    unit = int(10.0 ** max(len(str(int(bps))) - 3, 0))
    return int(bps // unit) * unit


def radio_delay_ns(transceiver: Transceiver, nbytes: int) -> int:
    """Return the least time that a frame takes to the other station's link layer."""
    return LEAD_NS + transceiver.airtime_ns(nbytes)
