"""The cable check: two radios, joined as they will be in a run, measure each other's bursts.

Read first: `cable_signal.py`.

Rules kept: a transmitter has at most the gain that its settings have. One radio transmits at a time, and only bursts
of some milliseconds.
"""

import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pmt
from gnuradio import gr

from flowgraphs.cable_signal import TARGET_DBFS, Direction, Measured, Samples, burst, level_dbfs, measure
from flowgraphs.frontend import BURST_TAG, FrontEndError, RadioSettings, Receiver, Transmitter, end

_STEPS = 6
#: of transmit gain, below the settings' own
_LOWEST_DB = -25.0
_SILENCE_S = 0.05
#: samples are judged in slots of this length
_SLOT_S = 1e-3
#: a burst must have come by then; a busy computer takes its time
_LISTEN_S = 0.2
_TRIES = 4
#: at each gain; the middle one counts, as a busy computer may tear one
_BURSTS = 3
_CAPTURE_TIMEOUT_S = 5.0
_IDLE_S = 0.02


class _Player(gr.sync_block):
    """A source of bursts, one for each `play`."""

    def __init__(self) -> None:
        super().__init__("bursts", None, [np.complex64])
        # whole bursts at a time, so that none runs dry
        self.set_min_output_buffer(1 << 16)
        self._left = np.zeros(0, np.complex64)
        self._wanted = threading.Event()

    def play(self) -> None:
        """Send one burst."""
        self._wanted.set()

    def work(self, _inputs: Any, outputs: Any) -> int:
        if not len(self._left):
            if not self._wanted.wait(_IDLE_S):
                return 0
            self._wanted.clear()
            self._left = burst()
            self.add_item_tag(0, self.nitems_written(0), pmt.intern(BURST_TAG), pmt.from_long(len(self._left)))
        n = min(len(outputs[0]), len(self._left))
        outputs[0][:n], self._left = self._left[:n], self._left[n:]
        return n


class _Ear(gr.sync_block):
    """A sink that keeps samples when it is asked to."""

    def __init__(self) -> None:
        super().__init__("ear", [np.complex64], None)
        self._kept: list[Samples] = []
        self._left = 0
        self._done = threading.Event()

    def listen(self, n: int) -> None:
        """Keep the next samples."""
        self._done.clear()
        self._kept, self._left = [], n

    def heard(self) -> Samples:
        """Return the samples, once all are there. Raises FrontEndError."""
        if not self._done.wait(_CAPTURE_TIMEOUT_S):
            raise FrontEndError(f"a radio gives no samples for {_CAPTURE_TIMEOUT_S:.0f} s: check cable and power")
        return np.concatenate(self._kept)

    def work(self, inputs: Any, _outputs: Any) -> int:
        samples = inputs[0]
        if self._left > 0:
            self._kept.append(samples[: self._left].copy())
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
        self.player, self.ear = _Player(), _Ear()
        self.graph = gr.top_block("cable check", catch_exceptions=False)
        self.graph.connect(self.player, self.transmitter.block)
        self.graph.connect(self.receiver.block, self.ear)
        self.graph.start()

    def listen(self, seconds: float) -> None:
        self.ear.listen(round(seconds * self.rate_sps))

    def silence(self) -> Samples:
        """Return samples while no one of us transmits: the quietest half, as a burst may come late."""
        self.listen(_SILENCE_S)
        slots = self.slots(self.ear.heard())
        quiet = np.argsort(np.mean(np.abs(slots) ** 2, axis=1))[: len(slots) // 2]
        silence: Samples = slots[np.sort(quiet)].ravel()
        return silence

    def slots(self, samples: Samples) -> Samples:
        """Return samples in rows of a slot."""
        slot = round(self.rate_sps * _SLOT_S)
        return samples[: len(samples) // slot * slot].reshape(-1, slot)

    def close(self) -> None:
        end(self.graph)
        self.transmitter.close()
        self.receiver.close()


def check(
    first: RadioSettings, second: RadioSettings, progress: Callable[[float], None] = lambda share: None
) -> Mapping[str, Direction | None]:
    """Measure from the first to the second ("up") and back ("down"); None: no burst was heard.

    Raises FrontEndError.
    """
    gr.logging().set_default_level(gr.log_levels.warn)
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
        bursts = [one for _ in range(_BURSTS) if (one := _exchange(sender, hearer)[0]) is not None]
        if bursts:
            bursts.sort(key=lambda one: one.evm_db)
            steps.append((float(block.get_gain()), bursts[len(bursts) // 2]))
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
    """Send a burst; return what was heard of it, and the loudest millisecond at the sender's own receiver (dBFS)."""
    silence, own_dbfs = hearer.silence(), -np.inf
    for _ in range(_TRIES):
        for radio in (sender, hearer):
            radio.listen(_LISTEN_S)
        sender.player.play()
        samples, own = hearer.ear.heard(), sender.ear.heard()
        own_dbfs = max(level_dbfs(part) for part in sender.slots(own))
        measured = measure(samples, hearer.rate_sps, silence)
        if measured is not None:
            return measured, own_dbfs
    return None, own_dbfs
