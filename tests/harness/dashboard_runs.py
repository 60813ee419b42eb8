"""Made-up records, run folders and dashboards for the tests of the server."""

import json
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from flask import Flask
from flask.testing import FlaskClient

from common.units import MS, SECOND
from dashboard.app import DashboardConfig, create_app
from dashboard.control import Control, ControlError, Offer, RunRequest, Scene, Started, Value
from dashboard.hub import Hub, RunInfo
from telemetry.parquet import ParquetSink
from telemetry.records import (
    AccessRecord,
    BeliefRecord,
    ControlRecord,
    FlowRecord,
    LinkRecord,
    PhyRecord,
    Record,
    StationRecord,
    TcpRecord,
    field_types,
)
from tests.harness.records import recorded
from tests.harness.scenarios import summary

TOKEN = "correct horse battery staple"
#: headers of a request from the page
HERE = {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}
EPOCH_NS = 1_790_000_000_000_000_000
LINK = recorded(
    LinkRecord,
    link="up",
    scheme="slacp",
    established=True,
    throughput_bps=2e6,
    goodput_bps=1e6,
    fec_repairs=0,
    residual_losses=0,
    corruption_losses=0,
)
TCP = recorded(TcpRecord, host="h1", flow="bulk", cwnd_bytes=14480, srtt_ms=51.0, rto_ms=252.0)


def info(name: str = "a-run", **changes: Any) -> RunInfo:
    return replace(RunInfo(name, "a run", "lossy-link", "slacp", "vusrp", "cubic", 1), **changes)


def records(seed: int, seconds: float) -> list[Record]:
    """Records of one run in the order in which it writes them.

    At random: integers grow, other figures have any value, and what may be None sometimes is.
    """
    draw = random.Random(seed)
    grown: Counter[object] = Counter()

    def drawn(kind: type[Record], time_ns: int, **given: Any) -> Record:
        figures: dict[str, Any] = {}
        for name, (hint, optional) in field_types(kind).items():
            if optional and draw.random() < 0.05:
                figures[name] = None
            elif hint is int:
                source = (kind, *given.values(), name)
                grown[source] += draw.randrange(20)
                figures[name] = grown[source]
            elif hint is float:
                figures[name] = draw.uniform(0, 100)
        return kind(**figures | {"time_ns": time_ns} | given)

    found: list[Record] = []
    for step in range(1, int(10 * seconds) + 1):
        time_ns = step * 100 * MS + draw.randrange(MS)
        for link in ("up", "down"):
            found.append(drawn(LinkRecord, time_ns, link=link, scheme="slacp", established=True))
            found.append(drawn(BeliefRecord, time_ns, link=link))
            found.append(drawn(PhyRecord, time_ns + 1, link=link, mode="qpsk"))
            found.append(drawn(AccessRecord, time_ns + 2, link=link))
        found.append(drawn(StationRecord, time_ns, station="st"))
        for flow in ("bulk-1", "bulk-2"):
            found.append(drawn(TcpRecord, time_ns + draw.randrange(50_000), host="h1", flow=flow))
            found.append(drawn(FlowRecord, time_ns + draw.randrange(50_000), host="h2", flow=flow))
    found.append(recorded(ControlRecord, time_ns=int(seconds * SECOND / 2), name="snr_db", value="12.5"))
    return found


def keep(runs: Path, name: str, kept: Iterable[Record] = (), **changes: Any) -> Path:
    """Make the folder of a run that is over; `changes` are to its result."""
    folder = runs / name
    folder.mkdir(parents=True)
    usual = {"scenario": "lossy-link", "duration_s": 8.0, "goodput_bps": 1.5e6, "throughput_bps": 1.9e6}
    result = asdict(summary(**usual | {"run": name} | changes))
    about = {key: result[key] for key in ("scenario", "tier", "seed")}
    stamps = {"started": f"2026-11-21T12:00:{result['seed']:02}.000+00:00", "epoch": "2026-11-21T12:01:00.123+00:00"}
    (folder / "manifest.json").write_text(json.dumps(about | stamps))
    (folder / "summary.json").write_text(json.dumps(result))
    (folder / "scenario.yaml").write_text(
        f"name: {result['scenario']}\ntier: {result['tier']}\nlink:\n  scheme: {result['scheme']}\nworkloads:\n"
        f"- kind: bulk\n"
    )
    with ParquetSink(folder, {"run": name}) as sink:
        sink.begin(EPOCH_NS)
        for record in kept:
            sink.write(record)
    return folder


def damage(file: Path) -> None:
    """Overwrite a page of a file of records."""
    octets = bytearray(file.read_bytes())
    octets[200:3000] = bytes(2800)
    file.write_bytes(octets)


class RecordingControls:
    def __init__(self) -> None:
        self.changes: list[tuple[str, Value]] = []
        self.stopped = False

    def describe(self) -> Sequence[Control]:
        present = next((value for name, value in reversed(self.changes) if name == "snr_db"), 20.0)
        return [Control("snr_db", "SNR", "range", present, "dB", 0, 40, 0.5)]

    def set(self, name: str, value: Value) -> None:
        if name != "snr_db":
            raise ControlError("there is no such control")
        self.changes.append((name, value))

    def stop(self) -> None:
        self.stopped = True


class RecordingStarter:
    def __init__(self) -> None:
        self.requests: list[RunRequest] = []

    def offers(self) -> Sequence[Offer]:
        return [Offer("lossy-link", "a lossy link", ("emulated",), ("none", "slacp"))]

    def why_not(self) -> str:
        return "a run is going on" if self.requests else ""

    def start(self, request: RunRequest) -> None:
        if self.requests:
            raise ControlError("nothing can be started: a run is going on")
        self.requests.append(request)

    def start_demo(self) -> None:
        self.start(RunRequest("lossy-link", "emulated", ("none", "slacp"), 60, 1))

    def start_scene(self, scene: Scene) -> Started:
        raise ControlError("a recording starter plays no scenes")


def application(runs: Path, hub: Hub | None = None, **options: Any) -> Flask:
    return create_app(DashboardConfig(hub or Hub(), runs, TOKEN, version="1", **options))


class Page:
    """A client that behaves like the page in a browser: it says where its requests come from."""

    def __init__(self, app: Flask, *, token: str | None = TOKEN) -> None:
        self.client: FlaskClient = app.test_client()
        if token is not None:
            self.post("/api/login", {"token": token})

    def get(self, path: str, **query: Any) -> Any:
        """The JSON at a path, which there must be."""
        answer = self.client.get(path, query_string=query)
        assert answer.status_code == 200, answer.text
        return answer.json

    def post(self, path: str, body: Any) -> tuple[int, Any]:
        """What a POST says: status and JSON."""
        answer = self.client.post(path, json=body, headers=HERE)
        return answer.status_code, answer.json

    def problem(self, path: str, **query: Any) -> tuple[int, str]:
        answer = self.client.get(path, query_string=query or None)
        assert answer.json is not None
        assert list(answer.json) == ["error"]
        assert "\n" not in answer.json["error"]
        return answer.status_code, answer.json["error"]


class Stage:
    """A dashboard with a live run that can be steered, a starter, and clients that have no token or have shown it."""

    def __init__(self, runs: Path, **options: Any) -> None:
        self.runs = runs
        self.hub, self.controls, self.starter = Hub(), RecordingControls(), RecordingStarter()
        self.feed = self.hub.open(info("live-run"), self.controls)
        self.app = application(runs, self.hub, starter=self.starter, **options)
        self.client, self.page = self.app.test_client(), Page(self.app)
