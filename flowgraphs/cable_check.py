"""The cable check: two radios, joined as they will be in a run, measure each other's bursts.

Read first: `cable_signal.py`.

Rules kept: a transmitter has at most the gain that its settings have. One radio transmits at a time, and only bursts
of some milliseconds. A burst that the device calls late or torn, and a capture with a gap, do not count.
"""

import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pmt
from gnuradio import gr, pdu

from flowgraphs.cable_signal import TARGET_DBFS, Direction, Measured, Samples, burst, level_dbfs, measure
from flowgraphs.frontend import BURST_TAG, FrontEndError, RadioSettings, Receiver, Transmitter, end, time_value
from flowgraphs.native import native

_STEPS = 6
#: of transmit gain, below the settings' own
_LOWEST_DB = -25.0
_SILENCE_S = 0.05
#: samples are judged in slots of this length
_SLOT_S = 1e-3
#: from the request to the burst: the device has all of it before it begins, so that a busy computer tears none
_LEAD_S = 0.1
#: listened to before and after a burst: more than the error with which the clocks of two devices are compared
_MARGIN_S = 0.03
_TRIES = 4
#: bursts that may be late or torn until one is not
_TORN = 20
_CAPTURE_TIMEOUT_S = 5.0
_COMPARISONS = 5
_BUSY = f"{_TORN} times samples came late or were lost: end what keeps this computer busy"


class _Ear(gr.sync_block):
    """A sink that keeps samples of a time of the device."""

    def __init__(self, rate_sps: float) -> None:
        super().__init__("ear", [np.complex64], None)
        self._rate_sps = rate_sps
        #: a sample and its time
        self._anchor = 0, 0.0
        self._kept: list[Samples] = []
        self._from_s, self._left, self._broken = 0.0, 0, False
        self._done = threading.Event()

    def listen(self, from_s: float, seconds: float) -> None:
        """Keep the samples from a time on."""
        self._done.clear()
        self._kept, self._from_s, self._broken = [], from_s, False
        self._left = round(seconds * self._rate_sps)

    def heard(self) -> Samples | None:
        """Return the samples, once all are there; None when there is a gap in them. Raises FrontEndError."""
        if not self._done.wait(_CAPTURE_TIMEOUT_S):
            raise FrontEndError(f"a radio gives no samples for {_CAPTURE_TIMEOUT_S:.0f} s: check cable and power")
        return None if self._broken else np.concatenate(self._kept)

    def work(self, inputs: Any, _outputs: Any) -> int:
        samples, start = inputs[0], self.nitems_read(0)
        # the device tags its first sample, and the first one after every gap
        for tag in self.get_tags_in_window(0, 0, len(samples), pmt.intern("rx_time")):
            whole_s, fraction_s = pmt.to_uint64(pmt.tuple_ref(tag.value, 0)), pmt.to_double(pmt.tuple_ref(tag.value, 1))
            self._anchor, self._broken = (tag.offset, whole_s + fraction_s), True
        if self._left > 0:
            sample, at_s = self._anchor
            first = sample + round((self._from_s - at_s) * self._rate_sps)
            self._kept.append(samples[max(first - start, 0) :][: self._left].copy())
            self._left -= len(self._kept[-1])
            if self._left == 0:
                self._done.set()
        return len(samples)


class _Radio:
    """One radio of the two."""

    def __init__(self, settings: RadioSettings) -> None:
        self.rate_sps = settings.rate_sps
        self.transmitter, self.receiver = Transmitter(settings), Receiver(settings)
        self.transmitter.check()
        # no Python source: one that has nothing to send is asked again a quarter of a second later
        self._player, self.ear = pdu.pdu_to_tagged_stream(gr.types.complex_t, BURST_TAG), _Ear(settings.rate_sps)
        # whole bursts at a time, so that none runs dry
        self._player.set_min_output_buffer(1 << 16)
        self._box = native().frame_box()
        self.graph = gr.top_block("cable check", catch_exceptions=False)
        self.graph.msg_connect((self.transmitter.block, "async_msgs"), (self._box, "events"))
        self.graph.connect(self._player, self.transmitter.block)
        self.graph.connect(self.receiver.block, self.ear)
        self.graph.start()

    def play(self, at_s: float) -> None:
        """Send one burst at a time of the device."""
        about = pmt.dict_add(pmt.make_dict(), pmt.intern("tx_time"), time_value(at_s))
        samples = burst()
        self._player.to_basic_block()._post(
            pmt.intern("pdus"), pmt.cons(about, pmt.init_c32vector(len(samples), samples))
        )

    def late(self) -> int:
        """Return how often the device has called samples to be sent late or missing."""
        events: int = self._box.late
        return events

    def now_s(self) -> float:
        """Return the time of the device."""
        return self.transmitter.now_s()

    def ahead_s(self, other: "_Radio") -> float:
        """Return how far this device's clock is ahead of another's; the quickest of some comparisons counts."""
        comparisons = []
        for _ in range(_COMPARISONS):
            before_s, here_s, after_s = other.now_s(), self.now_s(), other.now_s()
            comparisons.append((after_s - before_s, here_s - (before_s + after_s) / 2))
        return min(comparisons)[1]

    def silence(self) -> Samples:
        """Return samples while no one of us transmits."""
        for _ in range(_TORN):
            self.ear.listen(self.now_s(), _SILENCE_S)
            if (samples := self.ear.heard()) is not None:
                return samples
        raise FrontEndError(_BUSY)

    def slots(self, samples: Samples) -> Samples:
        """Return samples in rows of a slot."""
        slot = round(self.rate_sps * _SLOT_S)
        return samples[: len(samples) // slot * slot].reshape(-1, slot)

    def close(self) -> None:
        end(self.graph)
        self.transmitter.close()
        self.receiver.close()
        self._box.close()


def check(
    first: RadioSettings, second: RadioSettings, progress: Callable[[float], None] = lambda share: None
) -> Mapping[str, Direction | None]:
    """Measure from the first to the second ("up") and back ("down"); None: no burst was heard.

    Raises FrontEndError.
    """
    radios: list[_Radio] = []
    try:
        radios.append(_Radio(first))
        radios.append(_Radio(second))
        one, other = radios
        up = _direction(one, other, lambda share: progress(share / 2))
        return {"up": up, "down": _direction(other, one, lambda share: progress((1 + share) / 2))}
    finally:
        for radio in radios:
            radio.close()


def _direction(sender: _Radio, hearer: _Radio, progress: Callable[[float], None]) -> Direction | None:
    block = sender.transmitter.block
    full_db = float(block.get_gain())
    first = _level(sender, hearer)
    if first is None:
        return None
    silence_dbfs = level_dbfs(hearer.silence())
    lowest_db = max(block.get_gain_range().start(), full_db + _LOWEST_DB)
    steps = []
    for number, gain_db in enumerate(np.linspace(lowest_db, full_db, _STEPS)):
        block.set_gain(float(gain_db))
        measured, _ = _exchange(sender, hearer)
        if measured is not None:
            steps.append((float(block.get_gain()), measured))
        progress((number + 1) / _STEPS)
    before_dbfs = level_dbfs(sender.silence())
    _, own_dbfs = _exchange(sender, hearer)
    return Direction(hearer.receiver.gain_db, silence_dbfs, own_dbfs - before_dbfs, tuple(steps))


def _level(sender: _Radio, hearer: _Radio) -> Measured | None:
    """Set the receive gain so that the burst has its level, as far as the gain goes."""
    receiver, heard = hearer.receiver, None
    lowest_db, highest_db = receiver.gain_range_db
    for _ in range(_TRIES):
        measured, _ = _exchange(sender, hearer)
        if measured is None:
            # too weak to be found, or nothing is connected
            if receiver.gain_db == highest_db:
                return heard
            receiver.set_gain(highest_db)
            continue
        heard = measured
        if TARGET_DBFS[0] <= measured.level_dbfs <= TARGET_DBFS[1]:
            break
        gain_db = receiver.gain_db + sum(TARGET_DBFS) / 2 - measured.level_dbfs
        receiver.set_gain(min(max(gain_db, lowest_db), highest_db))
    return heard


def _exchange(sender: _Radio, hearer: _Radio) -> tuple[Measured | None, float]:
    """Send a burst; return what was heard of it, and the loudest millisecond at the sender's own receiver (dBFS).

    Raises FrontEndError.
    """
    silence, own_dbfs = hearer.silence(), -np.inf
    for _ in range(_TRIES):
        samples, own = _whole_burst(sender, hearer)
        own_dbfs = max(level_dbfs(part) for part in sender.slots(own))
        measured = measure(samples, hearer.rate_sps, silence)
        if measured is not None:
            return measured, own_dbfs
    return None, own_dbfs


def _whole_burst(sender: _Radio, hearer: _Radio) -> tuple[Samples, Samples]:
    """Send a burst; return what the hearer and the sender's own receiver heard meanwhile."""
    duration_s = len(burst()) / sender.rate_sps + 2 * _MARGIN_S
    for _ in range(_TORN):
        late, at_s = sender.late(), sender.now_s() + _LEAD_S
        hearer.ear.listen(at_s + hearer.ahead_s(sender) - _MARGIN_S, duration_s)
        sender.ear.listen(at_s - _MARGIN_S, duration_s)
        sender.play(at_s)
        samples, own = hearer.ear.heard(), sender.ear.heard()
        if samples is not None and own is not None and sender.late() == late:
            return samples, own
    raise FrontEndError(_BUSY)
