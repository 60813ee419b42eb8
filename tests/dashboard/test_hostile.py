"""Hostile requests and hostile run folders: an answer in one line, never a fault, never a file from elsewhere.

Requests are drawn for every address that the application has, whoever adds one.
"""

import json
import logging
import math
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from flask import Flask
from hypothesis import given
from hypothesis import strategies as st

from dashboard.control import Control, Value, require
from dashboard.hub import Hub
from telemetry.records import RECORD_TYPES, field_types
from testbed.cli.dashboard.run_starter import LiveRuns, LiveRunStarter
from testbed.paths import root
from testbed.scenario.schema import Scenario
from tests.harness.dashboard_runs import HERE, TCP, TOKEN, application, info, keep

#: of files that are not in a run's folder
OUTSIDE = "from elsewhere"
NAMES = ("past-run", "live-run", "linked-run", "stranger", "other-run")
TEXTS = (
    *("", ".", "..", "../outside", "past-run/../../outside", "/etc/passwd", "..\\outside", "%2e%2e/outside", "~root"),
    *("past-run\0", "past-run\n", "past-run ", "a" * 300, "a" * 9000, "/" * 2000, "[" * 20_000, "\udcff", "²", "💥"),
    *("nan", "inf", "-inf", "1e400", "-1", "-0", "9" * 5000, "1_0", "0x10", "true", "null", "<b>", "' OR 1=1 --"),
    *("csv", "png", "tcp", "cwnd", "goodput", "snr_db", "fading", "pause", "slacp", "lossy-link", "emulated", "up"),
)
texts = st.sampled_from(NAMES) | st.sampled_from(TEXTS) | st.text(max_size=30)
numbers = st.sampled_from([0, -1, 1, 2.5, 1e308, 10**400, -(10**400), 1 << 63, math.inf, math.nan]) | st.integers()
leaves = st.none() | st.booleans() | numbers | texts
bodies = st.recursive(leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4))
KEYS = ("name", "value", "token", "scenario", "tier", "schemes", "seconds", "seed")
orders = st.fixed_dictionaries({}, optional={key: leaves | st.lists(leaves, max_size=3) for key in KEYS})
raw = st.binary(max_size=50) | st.sampled_from(
    [b"[" * 60_000, b'{"a":' * 10_000, b"\xff\xfe", b'{"token": 1' + b"0" * 9000]
)
QUERY = (
    *("run", "history", "views", "text", "tier", "scheme", "finished", "sort", "page", "a", "b", "time", "direction"),
    *("charts", "token", "nothing"),
)
queries = st.lists(st.tuples(st.sampled_from(QUERY), texts | st.sampled_from(["-started", "2", "0.5"])), max_size=4)
HEADERS = (
    *("Origin", "Sec-Fetch-Site", "Authorization", "Cookie", "Last-Event-ID", "Range", "If-Modified-Since", "If-Range"),
    *("If-None-Match", "Accept", "Content-Type", "X-Forwarded-For", "X-Forwarded-Proto", "Content-Encoding"),
)
lines = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=40)
headers = st.dictionaries(
    st.sampled_from(HEADERS), lines | st.sampled_from(["bytes=0-1", "bytes=5-2", "fadelab=1.2", "Bearer ", "null"])
)


class Asked(NamedTuple):
    """An answer: its status, and its body or the beginning of it."""

    status: int
    body: bytes


class Steered:
    """Controls of each kind, checked as those of real runs are."""

    def describe(self) -> list[Control]:
        return [
            Control("snr_db", "SNR", "range", 20.0, "dB", 0, 40, 0.5),
            Control("fading", "fading", "choice", "flat", choices=("flat", "rayleigh")),
            Control("pause", "pause", "switch", value=False),
        ]

    def set(self, name: str, value: Value) -> None:
        require(self.describe(), name, value)

    def stop(self) -> None:
        pass


class Starter(LiveRunStarter):
    """Checks requests as the dashboard does, and starts nothing."""

    def why_not(self) -> str:
        return ""

    def _run(self, started: LiveRuns, scenario: Scenario, place: int) -> None:
        pass


class Faults(logging.Handler):
    """Keeps what the application has logged: its faults."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


class Attacked:
    """A dashboard with runs of all kinds: past, live, and one whose parts lead elsewhere."""

    def __init__(self, runs: Path) -> None:
        self.runs = runs
        outside = runs.parent / "outside"
        keep(runs, "past-run", [TCP])
        keep(runs.parent, "outside", [TCP], scenario=OUTSIDE)
        (runs / "linked-run").symlink_to(outside)
        stranger = keep(runs, "stranger", [TCP])
        for part in outside.iterdir():
            (stranger / part.name).unlink()
            (stranger / part.name).symlink_to(part)
        hub = Hub()
        self.feed = hub.open(info("live-run"), Steered())
        self.feed.begin(0)
        self.feed.write(TCP)
        starter = Starter(root() / "scenarios", runs, lambda *_: pytest.fail("a run"), lambda line: None)
        self.app = application(runs, hub, starter=starter, database=dict)
        self.faults = Faults()
        self.app.logger.addHandler(self.faults)
        self.app.logger.propagate = False

    def ask(self, method: str, path: bytes, query: str, **how: Any) -> Asked:
        """Ask for a path in octets, as it comes from the network, and check the answer."""
        self.faults.lines.clear()
        environ = {"PATH_INFO": path.decode("latin-1"), "QUERY_STRING": query}
        # a new client has no cookies
        answer = self.app.test_client().open("/", method=method, environ_overrides=environ, buffered=False, **how)
        try:
            # a stream has no end
            body = next(answer.iter_encoded(), b"") if answer.is_streamed else answer.data
        finally:
            answer.close()
        assert self.faults.lines == []
        assert answer.status_code != 500, body
        assert b"Traceback" not in body
        assert OUTSIDE.encode() not in body
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        if answer.status_code >= 400:
            assert body.count(b"\n") <= 1
            if path.startswith(b"/api/") and method != "HEAD":
                assert list(json.loads(body)) == ["error"]
        return Asked(answer.status_code, body)

    def json(self, path: str) -> Any:
        """The JSON at a path, which there must be."""
        answer = self.ask("GET", path.encode(), "")
        assert answer.status == 200, answer.body
        return json.loads(answer.body)


@pytest.fixture(scope="module")
def attacked() -> Iterator[Attacked]:
    with TemporaryDirectory() as folder:
        yield Attacked(Path(folder) / "runs")


def rules() -> list[str]:
    """The addresses of the application, as its patterns."""
    with TemporaryDirectory() as folder:
        app: Flask = application(Path(folder))
    return sorted({rule.rule for rule in app.url_map.iter_rules()})


methods = st.sampled_from(["GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "X"])


@pytest.mark.parametrize("rule", rules())
@given(data=st.data())
def test_no_request_is_a_fault_or_reads_elsewhere(attacked: Attacked, rule: str, data: st.DataObject) -> None:
    parts: list[bytes] = []
    for index, piece in enumerate(rule.replace(">", "<").split("<")):
        parts.append(data.draw(texts).encode(errors="surrogatepass") if index % 2 else piece.encode())
    query = urlencode(data.draw(queries), errors="surrogatepass")
    how: dict[str, Any] = {"headers": {**HERE, **data.draw(headers)}}
    if data.draw(st.booleans()):
        how["headers"]["Authorization"] = f"Bearer {TOKEN}"
    own = data.draw(st.sampled_from(["GET", "POST", "any"]))
    method = data.draw(methods) if own == "any" else own
    if method not in ("GET", "HEAD", "OPTIONS", "TRACE"):
        how["headers"].setdefault("Content-Type", "application/json")
        body = data.draw(raw | orders | bodies)
        how["data"] = body if isinstance(body, bytes) else json.dumps(body)
    attacked.ask(method, b"".join(parts), query, **how)


# -- what was found so -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["login", "start", "runs/live-run/controls"])
@pytest.mark.parametrize("body", ["[" * 60_000, '{"token":' * 7000, '{"seed": ' + "9" * 5000 + "}"])
def test_a_body_nested_too_deeply_is_refused(attacked: Attacked, path: str, body: str) -> None:
    how = {"headers": {"Authorization": f"Bearer {TOKEN}"}, "content_type": "application/json", "data": body}
    assert attacked.ask("POST", f"/api/{path}".encode(), "", **how).status in (400, 403)


def test_a_number_beyond_all_floats_is_refused(attacked: Attacked) -> None:
    how = {"headers": {"Authorization": f"Bearer {TOKEN}"}, "json": {"name": "snr_db", "value": 10**400}}
    answer = attacked.ask("POST", b"/api/runs/live-run/controls", "", **how)
    assert answer.status == 409


def test_links_in_a_run_are_not_followed(attacked: Attacked) -> None:
    [row] = [row for row in attacked.json("/api/runs")["runs"] if row["name"] == "stranger"]
    assert row["problem"] == "manifest.json cannot be read: it is a link, or no file"
    found = attacked.json("/api/runs/stranger")
    assert (found["manifest"], found["summary"], found["scenario"], found["files"]) == (None, None, None, [])
    assert attacked.ask("GET", b"/api/runs/stranger/export/tcp.csv", "").status == 404
    answer = attacked.ask("GET", b"/api/runs/stranger/story", "")
    assert "is a link" in json.loads(answer.body)["error"]
    assert attacked.ask("GET", b"/api/runs/linked-run", "").status == 404


def test_a_pipe_in_a_run_holds_nobody_up(attacked: Attacked) -> None:
    """Opening a pipe waits for one who writes into it."""
    folder = keep(attacked.runs, "pipes", [TCP])
    try:
        for name in ("scenario.yaml", "summary.json", "tcp.parquet"):
            (folder / name).unlink()
            os.mkfifo(folder / name)
        assert "summary.json cannot be read" in attacked.json("/api/runs/pipes")["problem"]
        assert "tcp.parquet cannot be read" in attacked.json("/api/runs/pipes/series")["problem"]
        assert attacked.ask("GET", b"/api/compare", "a=pipes&b=past-run").status == 404
    finally:
        shutil.rmtree(folder)


@given(st.binary(max_size=200), texts)
def test_no_path_is_a_fault(attacked: Attacked, path: bytes, query: str) -> None:
    attacked.ask("GET", b"/" + path, quote(query, errors="surrogatepass"))


# -- runs of strangers ---------------------------------------------------------------------------------------------

#: YAML that is small and stands for much, or for something that JSON does not have
BOMB = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 40)
)
CHAIN = "a0: &a0 1\n" + "".join(f"a{n}: &a{n} {'[' * 30}*a{n - 1}{']' * 30}\n" for n in range(1, 60))
SCENARIOS = (
    *(
        BOMB,
        CHAIN,
        "a: &a [*a]\n",
        "? &a {b: *a}\n: 1\n",
        "a: 2026-01-01\nb: !!binary AAAA\nc: !!set {x}\n",
        "? 2026-01-01\n: 1\n",
    ),
    *(
        "a: 0x" + "f" * 20_000,
        "a: " + "[" * 5000,
        "a: .nan\nb: .inf\n",
        "link: [1]\n",
        "!!python/object/apply:os.system [x]",
    ),
    *("link: {scheme: [slacp]}\ntcp: {a: 1}\n", "name: \x00", "- 1", "1"),
)
yamls = st.sampled_from(SCENARIOS) | st.text(max_size=60) | bodies.map(lambda found: json.dumps(found)[:100_000])
FIELDS = (
    *(
        "scenario",
        "tier",
        "scheme",
        "tcp",
        "seed",
        "goodput_bps",
        "throughput_bps",
        "duration_s",
        "on_time",
        "finished",
    ),
    *("intact", "started", "epoch", "changes", "link", "flows", "timeouts", "retransmissions", "quality"),
)
results = st.dictionaries(
    st.sampled_from(FIELDS), bodies | st.sampled_from(["0001-01-01", "9999-12-31T23:59:59+00:00"])
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=range(len(SCENARIOS)))
def test_no_scenario_is_a_fault(attacked: Attacked, scenario: str) -> None:
    folder = attacked.runs / "hostile"
    folder.mkdir(exist_ok=True)
    (folder / "scenario.yaml").write_text(scenario)
    for name in ("summary.json", "manifest.json"):
        (folder / name).unlink(missing_ok=True)
    for address, query in (("runs", ""), ("runs/hostile", ""), ("compare", "a=hostile&b=past-run")):
        attacked.ask("GET", f"/api/{address}".encode(), query)


@given(
    results,
    results,
    yamls,
    st.sampled_from(["", "summary.json", "manifest.json", "scenario.yaml"]),
    st.binary(max_size=200),
)
def test_no_file_of_a_run_is_a_fault(
    attacked: Attacked, manifest: Any, summary: Any, scenario: str, spoilt: str, octets: bytes
) -> None:
    folder = attacked.runs / "hostile"
    folder.mkdir(exist_ok=True)
    files = {"summary.json": json.dumps(summary), "manifest.json": json.dumps(manifest), "scenario.yaml": scenario}
    for name, text in files.items():
        (folder / name).write_bytes(text.encode(errors="surrogatepass") if name != spoilt else octets)
    for address, query in (
        *(("/api/runs", ""), ("/api/runs", "sort=-goodput_bps&text=a"), ("/api/runs/hostile", "")),
        *(("/api/runs/hostile/series", ""), ("/api/compare", "a=hostile&b=past-run"), ("/api/campaigns", "")),
        ("/api/compare", "a=past-run&b=hostile"),
    ):
        attacked.ask("GET", address.encode(), query)


columns = {
    pa.int64(): st.integers(-(1 << 63), (1 << 63) - 1),
    pa.float64(): st.floats(),
    pa.string(): st.text(max_size=9),
    pa.bool_(): st.booleans(),
}


@given(data=st.data())
def test_no_records_are_a_fault(attacked: Attacked, data: st.DataObject) -> None:
    """Records of the right columns, whose values are anything."""
    folder = attacked.runs / "records"
    folder.mkdir(exist_ok=True)
    kind = data.draw(st.sampled_from(RECORD_TYPES))
    for other in RECORD_TYPES:
        (folder / f"{other.measurement}.parquet").unlink(missing_ok=True)
    rows = data.draw(st.integers(0, 3))
    right = {int: pa.int64(), float: pa.float64(), str: pa.string(), bool: pa.bool_()}
    hints = {"time_ns": int, **dict.fromkeys(kind.tags, str)} | {
        name: hint for name, (hint, _) in field_types(kind).items()
    }
    drawn = {}
    for name, hint in hints.items():
        form = right[hint] if data.draw(st.integers(0, 9)) else data.draw(st.sampled_from(list(columns)))
        drawn[name] = pa.array(data.draw(st.lists(st.none() | columns[form], min_size=rows, max_size=rows)), form)
    pq.write_table(pa.table(drawn), folder / f"{kind.measurement}.parquet")
    for address in ("series", f"export/{kind.measurement}.csv", f"export/{kind.measurement}.parquet", ""):
        attacked.ask("GET", f"/api/runs/records/{address}".rstrip("/").encode(), "")
