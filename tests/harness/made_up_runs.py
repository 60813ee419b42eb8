"""Made-up runs for tests of the page: a source of records whose controls work, without radios and rights.

The records come from a small random model, not from measurements: a run without repair and one with SLACP, on the same
air. SNR, errors, SLACP and pause change the curves.
"""

import json
import math
import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from dashboard.control import Control, ControlError, Offer, RunRequest, Value, require
from dashboard.hub import Feed, Hub, RunInfo
from telemetry.records import ControlRecord, FlowRecord, LinkRecord, PhyRecord, TcpRecord
from telemetry.views import PhyView

INTERVAL_S = 0.1
_CAPACITY_BPS = 2e6
_FRAME_BITS = 8 * 1520
_MSS = 1448
_BINS = 256
_SYMBOLS = 240
_QPSK = [(i * math.sqrt(0.5), q * math.sqrt(0.5)) for i in (-1, 1) for q in (-1, 1)]


class MadeUpControls:
    """The controls of a made-up run; implements `dashboard.control.Controls`."""

    def __init__(self, scheme: str) -> None:
        self._lock = threading.Lock()
        #: set when the run is to end
        self.stopped = threading.Event()
        self._changes: list[tuple[str, Value]] = []
        self._controls = {
            control.name: control
            for control in (
                Control("snr_db", "SNR", "range", 14.0, "dB", 0, 40, 0.5),
                Control("fading", "Fading", "choice", "rician", choices=("none", "flat", "rician", "eva")),
                Control("per", "Frames lost at random", "range", 2.0, "%", 0, 50, 0.5),
                Control("slacp", "SLACP", "switch", scheme == "slacp"),
                Control("eln", "ELN", "switch", False, why_not="a made-up run has none"),
                Control("paused", "Pause traffic", "switch", False),
            )
        }

    def describe(self) -> Sequence[Control]:
        """Return all controls with their present values."""
        with self._lock:
            return list(self._controls.values())

    def set(self, name: str, value: Value) -> None:
        """Change one; raises ControlError."""
        with self._lock:
            require(list(self._controls.values()), name, value)
            self._controls[name] = replace(self._controls[name], value=value)
            self._changes.append((name, value))

    def stop(self) -> None:
        """End the run early."""
        self.stopped.set()

    def value(self, name: str) -> Value:
        """Return the value of a control."""
        return self._controls[name].value

    def take(self) -> list[tuple[str, Value]]:
        """Return the changes since the last call."""
        with self._lock:
            changes, self._changes = self._changes, []
            return changes


class MadeUpRun:
    """One made-up run, fed into a hub step by step."""

    def __init__(self, hub: Hub, name: str, scheme: str, seed: int) -> None:
        self.controls = MadeUpControls(scheme)
        title = f"made up, {scheme}: not measured"
        self.info = RunInfo(name, title, "made-up", scheme, "vusrp", "cubic", seed)
        self.feed: Feed = hub.open(self.info, self.controls)
        self._random = random.Random(seed)
        #: counters of each direction
        self._links: dict[str, Counter[str]] = {"up": Counter(), "down": Counter()}
        self._cwnd = 10.0
        self._ssthresh: float | None = None
        self._bytes = 0
        self._retransmits = self._timeouts = 0
        self._fade = 0.0

    def step(self, time_s: float) -> None:
        """Make one interval's records, ending at `time_s`."""
        time_ns = int(time_s * 1e9)
        for name, value in self.controls.take():
            self.feed.write(ControlRecord(time_ns=time_ns, name=name, value=json.dumps(value)))
        self._fade += 0.1 * (self._random.gauss(0, 4) - self._fade)
        snr_db = float(self.controls.value("snr_db")) + (self._fade if self.controls.value("fading") != "none" else 0.0)
        per = min(float(self.controls.value("per")) / 100 + 1 / (1 + math.exp(1.1 * (snr_db - 7))), 0.95)
        lost = self._link(time_ns, "up", self._load(), per)
        self._link(time_ns, "down", 0.04, per)
        self._tcp(time_ns, lost)
        for link in ("up", "down"):
            measured = snr_db + self._random.gauss(0, 0.3)
            share = min(max(self._random.gauss(per, 0.02), 0.0), 1.0)
            self.feed.write(
                PhyRecord(
                    time_ns=time_ns,
                    link=link,
                    snr_db=measured,
                    evm_db=-measured + 0.5,
                    cfo_hz=self._random.gauss(120, 10),
                    per=share,
                )
            )
            if self.feed.watched:
                self.feed.show(self._view(time_ns, link, measured))

    def end(self) -> None:
        """End the run with a summary."""
        self.feed.close()
        self.feed.ended(None, None)

    def _load(self) -> float:
        """Return the share of the capacity that TCP uses: its window over that of the path."""
        return 0.0 if self.controls.value("paused") else min(self._cwnd * _MSS * 8 / (_CAPACITY_BPS * 0.075), 1.0)

    def _link(self, time_ns: int, name: str, load: float, per: float) -> int:
        """Make one interval of one direction; return the packets that TCP has lost."""
        link = self._links[name]
        slacp = bool(self.controls.value("slacp"))
        room = max(int(load * _CAPACITY_BPS * INTERVAL_S / _FRAME_BITS + self._random.random()), 0)
        hit = sum(self._random.random() < per for _ in range(room))
        again = min(hit, room // 2) if slacp else 0
        redundancy = again // 3
        lost = sum(self._random.random() < per * per for _ in range(hit)) if slacp else hit
        dropped = 1 if load >= 1.0 and self._random.random() < 0.03 else 0
        link.update(
            frames=room,
            packets=room - again - redundancy,
            retransmissions=again,
            fec_frames=redundancy,
            fec_repairs=redundancy // 2,
            residual_losses=lost,
            congestion_losses=dropped,
            corruption_losses=hit,
        )
        sent_bps = room * _FRAME_BITS / INTERVAL_S
        self.feed.write(
            LinkRecord(
                time_ns=time_ns,
                link=name,
                scheme="slacp" if slacp else "none",
                established=True,
                throughput_bps=sent_bps,
                goodput_bps=max(room - again - redundancy - lost, 0) * _FRAME_BITS / INTERVAL_S,
                queue_bytes=int(max(load - 0.7, 0) * 64_000 * self._random.uniform(0.6, 1)),
                **link,
            )
        )
        if name == "up":
            self._bytes += max(room - again - redundancy - lost - dropped, 0) * _MSS
        return lost + dropped

    def _tcp(self, time_ns: int, lost: int) -> None:
        if lost and not self.controls.value("paused"):
            self._retransmits += lost
            self._ssthresh = max(self._cwnd * 0.7, 2.0)
            timeout = lost > 3 and self._random.random() < 0.3
            self._timeouts += timeout
            self._cwnd = 1.0 if timeout else self._ssthresh
        elif not self.controls.value("paused"):
            slow_start = self._ssthresh is None or self._cwnd < self._ssthresh
            self._cwnd = min(self._cwnd * 1.4 if slow_start else self._cwnd + 0.6, 45.0)
        srtt_ms = 52 + 4 * self._cwnd + self._random.gauss(0, 3)
        ssthresh = None if self._ssthresh is None else int(self._ssthresh * _MSS)
        self.feed.write(
            TcpRecord(
                time_ns=time_ns,
                host="h1",
                flow="bulk",
                cwnd_bytes=int(self._cwnd) * _MSS,
                ssthresh_bytes=ssthresh,
                srtt_ms=srtt_ms,
                rto_ms=srtt_ms + 200,
                bytes_acked=self._bytes,
                retransmits=self._retransmits,
                timeouts=self._timeouts,
            )
        )
        self.feed.write(
            FlowRecord(time_ns=time_ns, host="h2", flow="bulk", bytes_received=self._bytes, goodput_bps=0.0)
        )

    def _view(self, time_ns: int, link: str, snr_db: float) -> PhyView:
        sigma = 10 ** (-snr_db / 20) * math.sqrt(0.5)
        draw = self._random
        symbols = tuple(
            (i + draw.gauss(0, sigma), q + draw.gauss(0, sigma)) for i, q in draw.choices(_QPSK, k=_SYMBOLS)
        )
        half = _BINS / 2
        spectrum = tuple(
            -95 + (snr_db + 20) / (1 + (abs(b - half) / (0.38 * _BINS)) ** 24) + draw.gauss(0, 1.2)
            for b in range(_BINS)
        )
        center_hz = 2.45e9 if link == "up" else 2.40e9
        return PhyView(time_ns, link, center_hz, 2.5e6, spectrum, symbols, "qpsk")


class MadeUpRuns:
    """Feeds made-up runs into a hub from a thread, and starts them as a `RunStarter`: a context manager."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._lock = threading.Lock()
        self._runs: list[MadeUpRun] = []
        self._began = 0.0
        self._until = math.inf
        self._steps = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="made-up")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the live runs."""
        with self._lock:
            return tuple(run.info.name for run in self._runs)

    def offers(self) -> Sequence[Offer]:
        """Return the scenario of made-up runs."""
        return [Offer("made-up", "Two made-up runs at the same air", ("vusrp",), ("none", "slacp"))]

    def why_not(self) -> str:
        """Return why no run can be started now, or an empty string."""
        return "made-up runs go on: stop them first" if self._runs else ""

    def start(self, request: RunRequest) -> None:
        """Start a made-up run per scheme. Raises ControlError."""
        with self._lock:
            if self._runs:
                raise ControlError(self.why_not())
            if request.scenario != "made-up" or not set(request.schemes) <= {"none", "slacp"}:
                raise ControlError("there is one scenario, made-up, and the schemes none and slacp")
            stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
            self._runs = [
                MadeUpRun(self._hub, f"{stamp}-made-up-{scheme}-s{request.seed}", scheme, request.seed)
                for scheme in request.schemes
            ]
            self._began, self._until, self._steps = time.monotonic(), request.seconds, 0
            for run in self._runs:
                run.feed.begin(time.time_ns())

    def _run(self) -> None:
        while not self._stop.wait(INTERVAL_S / 2):
            with self._lock:
                elapsed_s = time.monotonic() - self._began
                while self._runs and (self._steps + 1) * INTERVAL_S <= elapsed_s:
                    self._steps += 1
                    for run in self._runs:
                        run.step(self._steps * INTERVAL_S)
                for run in [run for run in self._runs if run.controls.stopped.is_set() or elapsed_s > self._until]:
                    run.end()
                    self._runs.remove(run)

    def __enter__(self) -> "MadeUpRuns":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        for run in self._runs:
            run.end()
