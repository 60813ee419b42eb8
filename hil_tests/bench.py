"""The bench of the hardware-in-the-loop tests: two radios, virtual or real, and a loss between them that a test sets.

Read first: README.md here. A test says what the link must do at a loss or an SNR; only this file knows what makes it:
on virtual radios the gain of the path on the air, on real ones the transmit gain, lowered by as much.

Rules kept: data is compared here, octet by octet, whatever a test looks at. A measurement during which a device could
not keep up is no measurement: it is made once more, and fails for good with what was late. Waits are bounded and end on
events.
"""

import gc
import itertools
import os
import random
import select
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from flowgraphs.air import Air
from flowgraphs.frontend import FrontEndOptions, RadioSettings
from flowgraphs.levels import MIDDLE_GAIN_DB, TX_FULL_SCALE_DBM, path_gain_db
from flowgraphs.phy import Phy, Received
from flowgraphs.phys.ofdm.modem import OfdmPhy
from flowgraphs.transceiver import Transceiver
from testbed.live.usrp_radio import LEAD_NS
from testbed.results.summary import Summary
from testbed.running import run_once
from testbed.scenario.file import validate
from testbed.scenario.schema import Scenario
from tests.harness.busy import late
from tests.harness.live_runs import tell_lateness
from tests.harness.waiting import wait_for

RATE_SPS = 2.5e6
#: carrier from ST to BAS
DEFAULT_HZ = 2.46e9
#: the carrier of the other direction lies so far below
DUPLEX_HZ = 50e6
#: an IP packet of usual length
FRAME_BYTES = 1500
#: where a real radio's own noise and distortion add little: 0.4 dB where they leave 26 dB at best
LINEAR_DB = 16.0
#: SNR of virtual radios without loss
_CLEAR_DB = 40.0
#: transmit gain of real radios without loss: the middle of their range, and as much above its lower end, for losses
ROOM_DB = 28.0
#: SNR of a virtual family there, as README.md asks for
_CABLED_SNR_DB = 30.0
_CALIBRATION_STEP_DB = 5.0
#: frames in the radio: one on the air, one behind it
_IN_RADIO = 2
#: what a device's buffer still holds when the host is asked for the rest of a burst: n310's 8192 samples, less those
#: of a frame of FRAME_BYTES that they do not hold
_BUFFERED_S = 1.8e-3
#: how long the last frame is waited for, which may have been missed
_PATIENCE_NS = 1_000_000_000

_NO_OPTIONS = FrontEndOptions()
_numbers = itertools.count()


def frames(count: int, nbytes: int = FRAME_BYTES, seed: int = 1) -> list[bytes]:
    rng = random.Random(seed)
    return [rng.randbytes(nbytes) for _ in range(count)]


@dataclass(frozen=True, slots=True)
class Exchange:
    """What became of `sent` frames; figures are means over the frames that were heard."""

    sent: int
    heard: Sequence[Received]

    @property
    def per(self) -> float:
        """Share of frames that were missed or damaged."""
        return 1 - sum(received.crc_ok for received in self.heard) / self.sent

    @property
    def snr_db(self) -> float:
        return self._mean("snr_db")

    @property
    def rssi_db(self) -> float:
        """Level relative to full scale."""
        return self._mean("rssi_db")

    def _mean(self, figure: str) -> float:
        assert self.heard, "no frame was heard: check carriers, cable and levels"
        return fmean(getattr(received, figure) for received in self.heard)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keep Python from looking for garbage: in a process of many tests that takes longer than a burst may be late."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class Pair:
    """Two running transceivers: `a` sends, `b` hears.

    `lose(db)` attenuates what `b` hears by `db` more than at first and returns the loss the device made of it.
    """

    def __init__(self, a: Transceiver, b: Transceiver, lose: Callable[[float], float]) -> None:
        self.a = a
        self.b = b
        self.set_loss = lose
        self._sent = 0

    def set_snr(self, snr_db: float) -> float:
        """Set the loss at which `b` should hear about this SNR; return the loss in force."""
        return self.set_loss(self.clear_snr_db - snr_db)

    def set_tx_gain(self, db: float) -> float:
        """Set the gain of `a`, until a loss is set; return what the device made of it."""
        self.a.tx.block.set_gain(db)
        return float(self.a.tx.block.get_gain())

    def set_rx_gain(self, db: float) -> float:
        self.b.rx.set_gain(db)
        return self.b.rx.gain_db

    @cached_property
    def clear_snr_db(self) -> float:
        """SNR without loss: measured at one where it is linear, and the loss added."""
        for step in itertools.count():
            loss_db = self.set_loss(step * _CALIBRATION_STEP_DB)
            snr_db = self.exchange(frames(20, 300)).snr_db
            if snr_db < LINEAR_DB:
                return snr_db + loss_db
        raise AssertionError

    def exchange(self, sent: Sequence[bytes], receive: Callable[[], Received | None] | None = None) -> Exchange:
        """Send frames, at most two in the radio at a time, and return what was heard of them.

        `receive` takes the next frame from `b`, or None; it is called at least once for every frame sent.
        """
        for _ in range(2):
            before = self._troubles()
            with _no_collection():
                exchange = self._exchange(sent, receive or self.b.receive)
            after = self._troubles()
            if after == before:
                return exchange
        said = f"the machine did not keep up, twice: gaps heard and samples sent late rose from {before} to {after}"
        late(said, than_s=_BUFFERED_S)
        pytest.fail(f"{said}; free it and measure again")

    def _exchange(self, sent: Sequence[bytes], receive: Callable[[], Received | None]) -> Exchange:
        first = self._sent
        last = first + len(sent) - 1
        waiting = deque(sent)
        heard: dict[int, Received] = {}
        leaves_at: deque[int] = deque()
        now = time.monotonic_ns()
        give_up_at = now + _PATIENCE_NS
        while last not in heard and now < give_up_at:
            while leaves_at and leaves_at[0] <= now:
                leaves_at.popleft()
            while waiting and len(leaves_at) < _IN_RADIO:
                frame = waiting.popleft()
                self.a.send(frame)
                self._sent += 1
                starts_at = max(leaves_at[-1] if leaves_at else 0, now + LEAD_NS)
                leaves_at.append(starts_at + self.a.airtime_ns(len(frame)))
                give_up_at = leaves_at[-1] + _PATIENCE_NS
            wakes_at = leaves_at[0] if leaves_at else give_up_at
            select.select([self.b], [], [], (wakes_at - now) / 1e9)
            while (received := receive()) is not None:
                # the check of a frame's CRC must not be all that vouches for it
                if received.sequence >= first:
                    heard[received.sequence] = received
            now = time.monotonic_ns()
        for sequence, received in heard.items():
            assert not received.crc_ok or received.payload == sent[sequence - first], f"frame {sequence} is not as sent"
        return Exchange(len(sent), list(heard.values()))

    def _troubles(self) -> tuple[int, int]:
        return self.b.counters().overflows, self.a.counters().underflows


@dataclass(frozen=True, slots=True)
class Radios:
    """Two radios that are there: their device arguments, and how to attenuate what the second hears of the first."""

    args: tuple[str, str]
    #: set_loss(a, db) returns the loss in force
    set_loss: Callable[[Transceiver, float], float]


class Bench(ABC):
    """Two radios and the scenarios that run on them; results go below `runs`."""

    tier: str
    #: SNR without loss, where it is known without a measurement
    clear_snr_db: float | None

    def __init__(self, *, up_hz: float, runs: Path, options: FrontEndOptions = _NO_OPTIONS) -> None:
        self.up_hz = up_hz
        self.options = options
        #: by end of the link: what its radio says of itself
        self.about: dict[str, Mapping[str, Any]] = {}
        self._runs = runs

    def scenario(self, *parts: Mapping[str, Any], **changes: Any) -> Scenario:
        """Return a scenario for this bench, changed by `parts` in turn and by `changes`.

        `channel`, `link` and `radio` are merged, other keys replaced.
        """
        raw: dict[str, Any] = {
            "name": "hil",
            "tier": self.tier,
            "channel": {"rate_bps": 2_000_000, "delay_ms": 10},
            "radio": {"up_hz": self.up_hz, "down_hz": self.up_hz - DUPLEX_HZ, "rate_sps": RATE_SPS, **self._radio()},
            "workloads": [{"kind": "bulk", "bytes": 200_000}],
            "limit_s": 60,
        }
        for part in (*parts, changes):
            for key, value in part.items():
                raw[key] = {**raw.get(key, {}), **value} if key in ("channel", "link", "radio") else value
        return validate(raw, "hil")

    def run(self, scenario: Scenario) -> Summary:
        """Run a scenario whose asserted figures do not depend on how well the clock was kept."""
        summary = run_once(scenario, self._runs, lambda progress: None)
        tell_lateness(summary)
        return summary

    def measure(self, scenario: Scenario) -> Summary:
        """Run a scenario whose asserted figures lateness would falsify: a late run fails, to be tried again."""
        summary = self.run(scenario)
        if not summary.on_time:
            pytest.fail(
                f"the machine did not keep up: {summary.late_events} of {summary.events} events were late "
                f"(worst {summary.max_late_ms:.0f} ms); free it and measure again"
            )
        return summary

    @contextmanager
    def pair(self, *, modulation: str = "qpsk", fec: str = "none", up_hz: float | None = None) -> Iterator[Pair]:
        phy = OfdmPhy(rate_sps=RATE_SPS, modulation=modulation, fec=fec)
        with self.join(phy, up_hz=up_hz) as pair:
            yield pair

    @contextmanager
    def join(self, phy: Phy, *, up_hz: float | None = None) -> Iterator[Pair]:
        """Run two transceivers with any PHY, without loss at first."""
        up_hz = self.up_hz if up_hz is None else up_hz
        down_hz = up_hz - DUPLEX_HZ
        with (
            self._radios(phy) as radios,
            _real_time(),
            _started(RadioSettings(radios.args[1], RATE_SPS, down_hz, up_hz, options=self.options), phy) as b,
        ):
            # samples come before anything is sent: nothing is missed for want of a listener
            wait_for(lambda: len(b._meter.newest))
            with _started(RadioSettings(radios.args[0], RATE_SPS, up_hz, down_hz, options=self.options), phy) as a:
                self.about |= {"ST": a.tx.about(), "BAS": b.rx.about()}
                radios.set_loss(a, 0.0)
                yield Pair(a, b, lambda db: radios.set_loss(a, db))

    @abstractmethod
    def at_snr(self, snr_db: float) -> Mapping[str, Mapping[str, float]]:
        """Return the changes to a scenario that give its receivers this SNR."""

    @abstractmethod
    def _radios(self, phy: Phy) -> AbstractContextManager[Radios]:
        """Hold two radios for a pair."""

    def _radio(self) -> Mapping[str, Any]:
        return {}


class VirtualBench(Bench):
    """Virtual USRPs, on airs that last as long as a pair or a run."""

    tier = "vusrp"
    clear_snr_db = _CLEAR_DB

    def at_snr(self, snr_db: float) -> Mapping[str, Mapping[str, float]]:
        return {"channel": {"snr_db": snr_db}}

    @contextmanager
    def _radios(self, phy: Phy) -> Iterator[Radios]:
        clear_db = path_gain_db(_CLEAR_DB, rate_sps=RATE_SPS, tx_gain_db=MIDDLE_GAIN_DB, rms=phy.rms)
        with Air.create(f"hil-{os.getpid()}-{next(_numbers)}", seed=1) as air:

            def set_loss(a: Transceiver, db: float) -> float:
                air.set_link("A", "B", gain_db=clear_db - db)
                return db

            yield Radios((f"type=vusrp,air={air.name},serial=A", f"type=vusrp,air={air.name},serial=B"), set_loss)


class RealBench(Bench):
    """Two USRPs joined by cables and attenuators; `devices` are ST's and BAS's UHD arguments."""

    tier = "usrp"
    clear_snr_db = None

    def __init__(self, devices: tuple[str, str], *, up_hz: float, runs: Path, options: FrontEndOptions) -> None:
        super().__init__(up_hz=up_hz, runs=runs, options=options)
        self._args = devices

    def at_snr(self, snr_db: float) -> Mapping[str, Mapping[str, float]]:
        gain_db, clear_snr_db = self._calibration
        return {"radio": {"tx_gain_db": gain_db - (clear_snr_db - snr_db)}}

    @cached_property
    def _calibration(self) -> tuple[float, float]:
        """Transmit gain without loss, and the SNR it gives."""
        with self.pair() as pair:
            return clear_gain_db(pair.a), pair.clear_snr_db

    @contextmanager
    def _radios(self, phy: Phy) -> Iterator[Radios]:
        yield Radios(self._args, _lower_gain)

    def _radio(self) -> Mapping[str, Any]:
        return {"devices": self._args, "cabled": self.options.cabled, "region": self.options.region}


class FamilyBench(RealBench):
    """Two virtual USRPs of a family, joined as real ones are: by an attenuator that fits their levels, on one air."""

    def __init__(self, profile: str, *, up_hz: float, runs: Path) -> None:
        self._air = Air.create(f"hil-{os.getpid()}-{next(_numbers)}", seed=1)
        address = f"type=vusrp,profile={profile},air={self._air.name},serial="
        super().__init__(
            (f"{address}ST", f"{address}BAS"), up_hz=up_hz, runs=runs, options=FrontEndOptions(cabled=True)
        )

    def close(self) -> None:
        self._air.close()

    @contextmanager
    def _radios(self, phy: Phy) -> Iterator[Radios]:
        def set_loss(a: Transceiver, db: float) -> float:
            loss_db = _lower_gain(a, max(db, 0.0))
            [sender] = [device for device in self._air.devices() if device.serial == "ST"]
            # relative to ideal radios, whose level path_gain_db() knows
            excess_db = sender.tx[0].full_scale_dbm + loss_db - TX_FULL_SCALE_DBM
            gain_db = path_gain_db(_CABLED_SNR_DB - min(db, 0.0), rate_sps=RATE_SPS, tx_gain_db=excess_db, rms=phy.rms)
            for ends in (("ST", "BAS"), ("BAS", "ST")):
                self._air.set_link(*ends, gain_db=gain_db)
            return loss_db + min(db, 0.0)

        yield Radios(self._args, set_loss)


def _lower_gain(a: Transceiver, db: float) -> float:
    gains = a.tx.block.get_gain_range()
    wanted_db = clear_gain_db(a) - db
    if not gains.start() <= wanted_db <= gains.stop():
        # a stronger signal than without loss is more than README.md asks for
        (pytest.fail if db > 0 else pytest.skip)(
            f"a loss of {db:.1f} dB takes a transmit gain of {wanted_db:.1f} dB, and the radio has {gains.start():g} "
            f"to {gains.stop():g}: change the attenuator between the radios"
        )
    a.tx.block.set_gain(wanted_db)
    return clear_gain_db(a) - float(a.tx.block.get_gain())


def clear_gain_db(a: Transceiver) -> float:
    """Return the transmit gain without loss."""
    gains = a.tx.block.get_gain_range()
    return min(max(a.tx.gain_db, gains.start() + ROOM_DB), gains.stop())


@contextmanager
def _real_time() -> Iterator[None]:
    """Let the threads that are started here run before those of other programs, as in a station."""
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


@contextmanager
def _started(settings: RadioSettings, phy: Phy) -> Iterator[Transceiver]:
    with closing(Transceiver(settings, phy)) as transceiver:
        transceiver.start()
        yield transceiver
