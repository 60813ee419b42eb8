"""Made-up runs for tests of the page: a source of records whose controls work, without radios and rights.

The records are drawn, not measured: a run without repair, and one with SLACP. SNR, errors and SLACP change the curves.
"""

import json
import math
import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dashboard.control import Control, ControlError, Offer, Outcome, RunRequest, Scene, Value, require
from dashboard.hub import Feed, Hub, RunInfo
from telemetry.records import BeliefRecord, ControlRecord, FlowRecord, LinkRecord, PhyRecord, TcpRecord
from telemetry.views import PhyView

INTERVAL_S = 0.1
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
            )
        }

    def describe(self) -> Sequence[Control]:
        with self._lock:
            return list(self._controls.values())

    def set(self, name: str, value: Value) -> None:
        with self._lock:
            require(list(self._controls.values()), name, value)
            self._controls[name] = replace(self._controls[name], value=value)
            self._changes.append((name, value))

    def stop(self) -> None:
        self.stopped.set()

    def value(self, name: str) -> Value:
        return self._controls[name].value

    def take(self) -> list[tuple[str, Value]]:
        """Return the changes since the last call."""
        with self._lock:
            changes, self._changes = self._changes, []
            return changes


class MadeUpRun:
    def __init__(self, hub: Hub, name: str, scheme: str, seed: int, tier: str = "vusrp", tcp: str = "cubic") -> None:
        self.controls = MadeUpControls(scheme)
        title = f"made up, {scheme}: not measured"
        self.info = RunInfo(name, title, "made-up", scheme, tier, tcp, seed)
        self.feed: Feed = hub.open(self.info, self.controls)
        self._random = random.Random(seed)
        #: counters of each direction, and octets of TCP
        self._links: dict[str, Counter[str]] = {"up": Counter(), "down": Counter()}
        self._acked = 0
        self._elapsed_s = 0.0
        self.over = threading.Event()

    def step(self, time_s: float) -> None:
        """Make one interval's records, ending at `time_s`."""
        time_ns, draw = int(time_s * 1e9), self._random
        self._elapsed_s = time_s
        for name, value in self.controls.take():
            self.feed.write(ControlRecord(time_ns=time_ns, name=name, value=json.dumps(value)))
        snr_db = float(self.controls.value("snr_db")) + draw.gauss(0, 1)
        per = float(self.controls.value("per")) / 100
        for link, counters in self._links.items():
            self.feed.write(self._link(time_ns, link, counters, per))
            if self.controls.value("slacp"):
                self.feed.write(self._beliefs(time_ns, link, counters, per))
            measured: dict[str, Any] = {"snr_db": snr_db, "evm_db": -snr_db, "cfo_hz": draw.gauss(120, 10), "per": per}
            self.feed.write(PhyRecord(time_ns=time_ns, link=link, **measured))
            if self.feed.watched:
                self.feed.show(self._view(time_ns, link, snr_db))
        for record in self._flow(time_ns):
            self.feed.write(record)

    def end(self) -> None:
        self.feed.close()
        self.feed.ended(self.summary(), None)
        self.over.set()

    def summary(self) -> dict[str, Any]:
        """What a run's summary has of this one (docs/runs.md)."""
        duration_s = max(self._elapsed_s, INTERVAL_S)
        link = {
            name: dict(counters)
            | {
                "throughput_bps": counters["frames"] * _FRAME_BITS / duration_s,
                "per": counters["corruption_losses"] / max(counters["frames"], 1),
                "residual_per": counters["residual_losses"] / max(counters["packets"], 1),
            }
            for name, counters in self._links.items()
        }
        return {
            "duration_s": duration_s,
            "capacity_bps": 2_000_000,
            "goodput_bps": 8 * self._acked / duration_s,
            "throughput_bps": self._links["up"]["frames"] * _FRAME_BITS / duration_s,
            "link": link,
        }

    def _link(self, time_ns: int, name: str, counters: Counter[str], per: float) -> LinkRecord:
        slacp = bool(self.controls.value("slacp"))
        frames = self._random.randrange(10, 17)
        hit = sum(self._random.random() < per for _ in range(frames))
        again = hit if slacp else 0
        counters.update(
            frames=frames,
            packets=frames - again - again // 2,
            retransmissions=again,
            fec_frames=again // 2,
            fec_repairs=again // 2,
            residual_losses=hit - again,
            congestion_losses=int(self._random.random() < 0.03),
            corruption_losses=hit,
        )
        bps = frames * _FRAME_BITS / INTERVAL_S
        return LinkRecord(
            time_ns=time_ns,
            link=name,
            scheme="slacp" if slacp else "none",
            established=True,
            throughput_bps=bps,
            goodput_bps=bps * (1 - hit / frames),
            queue_bytes=self._random.randrange(20_000),
            **counters,
        )

    def _beliefs(self, time_ns: int, name: str, counters: Counter[str], per: float) -> BeliefRecord:
        """Beliefs as of a link that tunes itself."""
        loss = min(1.0, max(0.0, self._random.gauss(per, 0.01)))
        packets, missed = counters["packets"], counters["residual_losses"]
        return BeliefRecord(
            time_ns=time_ns,
            link=name,
            loss=loss,
            loss_low=loss / 2,
            loss_high=loss + 0.02,
            burst_correlation=0.1 * self._random.random(),
            rounds_planned=self._random.randrange(2, 5),
            budget_ms=180.0,
            packets=packets,
            rounds=packets + counters["retransmissions"],
            frames=counters["frames"],
            settled=packets,
            delivered=packets - missed,
            in_time=packets - missed - counters["fec_repairs"],
            missed=missed,
        )

    def _flow(self, time_ns: int) -> tuple[TcpRecord, FlowRecord]:
        lost = self._links["up"]["residual_losses"]
        # half of it without repair, so that no stretch of luck decides which run leads
        segments = self._random.randrange(10, 17)
        self._acked += (segments if self.controls.value("slacp") else segments // 2) * _MSS
        figures = {
            "cwnd_bytes": self._random.randrange(2, 45) * _MSS,
            "ssthresh_bytes": 20 * _MSS,
            "bytes_acked": self._acked,
            "retransmits": lost,
            "timeouts": lost // 20,
        }
        srtt_ms = self._random.gauss(150, 10)
        tcp = TcpRecord(time_ns=time_ns, host="h1", flow="bulk", srtt_ms=srtt_ms, rto_ms=srtt_ms + 200, **figures)
        return tcp, FlowRecord(time_ns=time_ns, host="h2", flow="bulk", bytes_received=self._acked, goodput_bps=0.0)

    def _view(self, time_ns: int, link: str, snr_db: float) -> PhyView:
        sigma, draw = 10 ** (-snr_db / 20) * math.sqrt(0.5), self._random
        symbols = tuple(
            (i + draw.gauss(0, sigma), q + draw.gauss(0, sigma)) for i, q in draw.choices(_QPSK, k=_SYMBOLS)
        )
        spectrum = tuple(-95 + snr_db * (0.2 < b / _BINS < 0.8) + draw.gauss(0, 1.2) for b in range(_BINS))
        return PhyView(time_ns, link, 2.45e9 if link == "up" else 2.40e9, 2.5e6, spectrum, symbols, "qpsk")


class MadeUpScene:
    """Made-up runs of a scene; implements `dashboard.control.Started`."""

    def __init__(self, runs: Sequence[MadeUpRun]) -> None:
        self._runs = runs

    def wait(self, seconds: float) -> bool:
        return all(run.over.wait(seconds) for run in self._runs)

    def stop(self) -> None:
        for run in self._runs:
            run.controls.stop()

    def outcomes(self) -> Sequence[Outcome]:
        return [Outcome(run.summary()) for run in self._runs]


class MadeUpRuns:
    """Feeds made-up runs into a hub from a thread, and starts them as a `RunStarter`: a context manager."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._lock = threading.Lock()
        self._runs: list[MadeUpRun] = []
        self._began = 0.0
        self._until = math.inf
        self._steps = 0
        self._made = 0
        #: how long the runs of a scene last, and why none can begin
        self.scene_s = 600.0
        self.scene_problem = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="made-up")

    @property
    def names(self) -> tuple[str, ...]:
        with self._lock:
            return tuple(run.info.name for run in self._runs)

    def offers(self) -> Sequence[Offer]:
        return [Offer("made-up", "Two made-up runs at the same air", ("vusrp",), ("none", "slacp"))]

    def why_not(self) -> str:
        return "made-up runs go on: stop them first" if self._runs else ""

    def start(self, request: RunRequest) -> None:
        with self._lock:
            if request.scenario != "made-up" or not set(request.schemes) <= {"none", "slacp"}:
                raise ControlError("there is one scenario, made-up, and the schemes none and slacp")
            self._begin([(scheme, "vusrp", "cubic") for scheme in request.schemes], request.seconds, request.seed)

    def _begin(self, wanted: Sequence[tuple[str, str, str]], seconds: float, seed: int) -> Sequence[MadeUpRun]:
        """Begin runs, each of a scheme, a tier and a TCP."""
        if self._runs:
            raise ControlError(self.why_not())
        self._made += 1
        stamp = f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{self._made}"
        self._runs = [
            MadeUpRun(self._hub, f"{stamp}-made-up-{scheme}-{tcp}-s{seed}", scheme, seed, tier, tcp)
            for scheme, tier, tcp in wanted
        ]
        self._began, self._until, self._steps = time.monotonic(), seconds, 0
        for run in self._runs:
            run.feed.begin(time.time_ns())
        return tuple(self._runs)

    def start_scene(self, scene: Scene) -> MadeUpScene:
        """Begin runs with the schemes and TCPs of a scene; `scene_s` is how long they last."""
        with self._lock:
            if self.scene_problem:
                raise ControlError(self.scene_problem)
            told = [dict(setting.split("=", 1) for setting in settings) for settings in scene.runs]
            wanted = [(each["link.scheme"], scene.tier, each.get("tcp", "cubic")) for each in told]
            return MadeUpScene(self._begin(wanted, self.scene_s, 1))

    def start_demo(self) -> None:
        self.start(RunRequest("made-up", "vusrp", ("none", "slacp"), 600, 1))

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
