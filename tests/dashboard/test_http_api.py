"""What the dashboard answers, as the page reads it; and what it says when it cannot."""

import io
import json
import math
import re
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from dashboard.app import ServerError
from dashboard.charts import CHARTS
from dashboard.control import RunRequest
from telemetry.records import RECORD_TYPES, LinkRecord
from tests.harness.dashboard_runs import (
    EPOCH_NS,
    HERE,
    TCP,
    Page,
    Stage,
    application,
    damage,
    info,
    keep,
    records,
)

RUN_INFO = {
    *("name", "title", "scenario", "scheme", "tier", "tcp", "seed", "radio", "topology", "epoch_ns", "live", "ended"),
    *("controlled", "charts"),
}
RECORDS = records(5, 8.0)
DATABASE = {"state": "running", "message": ""}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs that are over."""
    runs = tmp_path_factory.mktemp("kept")
    keep(runs, "past-run", RECORDS)
    keep(runs, "other-run", records(6, 8.0), scheme="none", goodput_bps=0.75e6)
    return runs


@pytest.fixture
def stage(tmp_path: Path, kept: Path) -> Stage:
    """A dashboard with both, with a live run of the same records, and with a database."""
    shutil.copytree(kept, tmp_path / "runs")
    stage = Stage(tmp_path / "runs", database=lambda: DATABASE)
    stage.feed.begin(EPOCH_NS)
    for record in RECORDS:
        stage.feed.write(record)
    return stage


# -- reading --------------------------------------------------------------------------------------------------


def test_state(stage: Stage) -> None:
    state = stage.page.get("/api/state")
    assert state["version"] == "1"
    assert state["authorised"] is True
    assert [run["name"] for run in state["live"]] == ["live-run"]
    assert set(state["live"][0]) == RUN_INFO
    assert state["starter"] == {"why_not": "", "offers": [json.loads(json.dumps(asdict(stage.starter.offers()[0])))]}
    assert state["database"] == DATABASE
    assert state["retention_s"] == 600
    assert Page(stage.app, token=None).get("/api/state")["authorised"] is False


def test_a_dashboard_that_only_watches(tmp_path: Path) -> None:
    page = Page(application(tmp_path))
    state = page.get("/api/state")
    assert (state["live"], state["starter"], state["database"]) == ([], None, None)
    assert page.post("/api/start", asdict(REQUEST)) == (
        409,
        {"error": "this dashboard only watches: it starts no runs"},
    )
    assert page.get("/api/runs")["total"] == 0


def test_charts(stage: Stage) -> None:
    charts = stage.page.get("/api/charts")
    assert [chart["key"] for chart in charts] == [chart.name for chart in CHARTS]
    assert all(set(chart) == {"key", "title", "unit", "scale", "description", "lines"} for chart in charts)


def test_the_list_of_runs(stage: Stage) -> None:
    keep(stage.runs, "live-run").joinpath("summary.json").unlink()
    found = stage.page.get("/api/runs", sort="name")
    rows = {row["name"]: row for row in found["runs"]}
    assert list(rows) == ["live-run", "other-run", "past-run"]
    assert (rows["live-run"]["live"], rows["live-run"]["problem"]) == (True, "")
    assert (rows["past-run"]["live"], rows["past-run"]["goodput_bps"]) == (False, 1.5e6)
    assert found["facets"]["scheme"] == ["none", "slacp"]
    assert [row["name"] for row in stage.page.get("/api/runs", scheme="none")["runs"]] == ["other-run"]
    stage.feed.close()
    rows = {row["name"]: row for row in stage.page.get("/api/runs")["runs"]}
    assert rows["live-run"]["problem"].startswith("no result")


def test_one_run(stage: Stage) -> None:
    found = stage.page.get("/api/runs/past-run")
    assert set(found["info"]) == RUN_INFO
    assert found["info"]["epoch_ns"] == 1795262460_123_000_000
    assert found["info"]["ended"]["summary"] == found["summary"]
    assert found["manifest"]["seed"] == 1
    assert found["scenario"].startswith("name: lossy-link\n")
    assert {file["name"] for file in found["files"]} == {
        "manifest.json",
        "summary.json",
        "scenario.yaml",
        *(f"{kind.measurement}.parquet" for kind in RECORD_TYPES),
    }
    live = stage.page.get("/api/runs/live-run")
    assert (live["info"]["live"], live["summary"], live["files"]) == (True, None, [])


def test_series_of_a_past_and_of_a_live_run_are_the_same(stage: Stage) -> None:
    past, live = (stage.page.get(f"/api/runs/{name}/series") for name in ("past-run", "live-run"))
    assert past["series"] == live["series"]
    assert past["marks"] == live["marks"]
    assert past["notes"] == live["notes"] == [{"t": 4.0, "name": "snr_db", "value": 12.5}]
    assert past["info"]["charts"] == [chart.name for chart in CHARTS]
    assert len(past["series"]["throughput"]["up"]["t"]) == 80


def test_long_series_are_thinned_and_runs_without_radios_have_no_snr(tmp_path: Path) -> None:
    kept = [
        replace(TCP, time_ns=n * 10_000_000, cwnd_bytes=n % 7 + (10_000 if n == 5_678 else 0)) for n in range(10_000)
    ]
    keep(tmp_path, "long-run", kept)
    found = Page(application(tmp_path)).get("/api/runs/long-run/series")
    curve = found["series"]["cwnd"]["bulk"]
    assert len(curve["t"]) == len(curve["v"]) <= 2000
    assert max(curve["v"]) == 10_000 + 5_678 % 7
    assert "snr" not in found["info"]["charts"]


def test_two_runs_compared(stage: Stage) -> None:
    found = stage.page.get("/api/compare", a="other-run", b="past-run")
    rows = {row["key"]: row for row in found["rows"]}
    assert (rows["goodput_bps"]["a"], rows["goodput_bps"]["b"], rows["goodput_bps"]["ratio"]) == (0.75e6, 1.5e6, 2.0)
    assert found["differs"] == [{"key": "link.scheme", "a": "none", "b": "slacp"}]
    assert (found["a"]["scheme"], found["b"]["scheme"]) == ("none", "slacp")
    live = stage.page.get("/api/compare", a="live-run", b="past-run")
    assert all(row["a"] is None for row in live["rows"])


def test_a_result_that_is_no_number_does_not_break_the_page(tmp_path: Path) -> None:
    keep(tmp_path, "a-run", goodput_bps=math.nan)
    page = Page(application(tmp_path))
    assert page.get("/api/runs")["runs"][0]["goodput_bps"] is None
    assert "NaN" not in page.client.get("/api/runs/a-run").text


# -- exports ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", ["past-run", "live-run"])
@pytest.mark.parametrize("kind", RECORD_TYPES)
def test_exports_hold_the_records(stage: Stage, run: str, kind: Any) -> None:
    path = f"/api/runs/{run}/export/{kind.measurement}"
    expected = [asdict(record) for record in RECORDS if isinstance(record, kind)]

    parquet = stage.page.client.get(f"{path}.parquet")
    assert parquet.headers["Content-Disposition"] == f"attachment; filename={run}-{kind.measurement}.parquet"
    table = pq.read_table(pa.BufferReader(parquet.data))
    assert table.to_pylist() == expected
    assert table.schema.metadata[b"epoch_ns"] == str(EPOCH_NS).encode()

    csv = stage.page.client.get(f"{path}.csv")
    assert csv.mimetype == "text/csv"
    options = pa.csv.ConvertOptions(column_types=table.schema, strings_can_be_null=False)
    assert pa.csv.read_csv(io.BytesIO(csv.data), convert_options=options).to_pylist() == expected
    assert csv.text.splitlines()[0] == ",".join(expected[0])


def test_a_finished_run_is_exported_whole_from_its_folder(stage: Stage) -> None:
    keep(stage.runs, "live-run", records(9, 1.0))
    stage.feed.close()
    exported = stage.page.client.get("/api/runs/live-run/export/link.parquet").data
    assert pq.read_table(pa.BufferReader(exported)).num_rows == len(
        [r for r in records(9, 1.0) if isinstance(r, LinkRecord)]
    )


@pytest.mark.slow
@pytest.mark.parametrize(("form", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_plots(stage: Stage, form: str, magic: bytes) -> None:
    answer = stage.page.client.get(f"/api/runs/past-run/plot.{form}?charts=cwnd&b=other-run")
    assert answer.status_code == 200
    assert answer.data.startswith(magic)
    assert answer.headers["Content-Disposition"] == f"attachment; filename=past-run-and-other-run.{form}"


@pytest.mark.slow
def test_lines_of_two_runs_in_a_plot_are_told_apart(stage: Stage) -> None:
    svg = stage.page.client.get("/api/runs/past-run/plot.svg?charts=repairs&b=other-run").text
    # those of curves have this width, those of the grid another
    lines = re.findall(r'clip-path="[^"]*" style="fill: none; ([^"]*stroke-width: 1.1)', svg)
    looks = {(re.findall(r"stroke: #(\w+)", one)[0], *re.findall(r"dasharray: ([\d.,]+)", one)) for one in lines}
    # in each run a direction's four kinds, and TCP of two flows
    assert len(looks) == len(lines) == 12


@pytest.mark.slow
def test_a_plot_shows_what_was_asked_for(stage: Stage) -> None:
    svg = stage.page.client.get("/api/runs/live-run/plot.svg?charts=queue,per&b=past-run").text
    # both runs have the same scheme, and are told apart
    assert "A, slacp: up" in svg
    assert "B, slacp: up" in svg
    assert ">Queue<" in svg
    assert ">Goodput<" not in svg
    assert ">Goodput<" in stage.page.client.get("/api/runs/live-run/plot.svg").text


# -- changing -----------------------------------------------------------------------------------------------------

REQUEST = RunRequest("lossy-link", "emulated", ("none", "slacp"), 20.0, 7)


def test_starting_runs(stage: Stage) -> None:
    assert stage.page.post("/api/start", asdict(REQUEST)) == (200, {"ok": True})
    assert stage.starter.requests == [REQUEST]
    assert stage.page.post("/api/start", asdict(REQUEST)) == (
        409,
        {"error": "nothing can be started: a run is going on"},
    )


#: values that a request may not have
INVALID: dict[str, list[Any]] = {
    "scenario": [1],
    "tier": [None],
    "schemes": ["none", [], ["none", "none"], [1], list("abcde")],
    "seconds": ["20", True, -1, 1e300],
    "seed": [1.5, True, -1, 1 << 80],
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in INVALID.items() for value in values])
def test_invalid_run_requests_are_refused(stage: Stage, key: str, value: Any) -> None:
    status, answer = stage.page.post("/api/start", asdict(REQUEST) | {key: value})
    assert status == 400
    assert list(answer) == ["error"]
    assert stage.starter.requests == []


def test_steering_a_run(stage: Stage) -> None:
    assert stage.page.post("/api/runs/live-run/controls", {"name": "snr_db", "value": 7.5}) == (200, {"ok": True})
    assert stage.controls.changes == [("snr_db", 7.5)]
    assert stage.feed.describe_controls()[0]["value"] == 7.5
    assert stage.page.post("/api/runs/live-run/stop", {}) == (200, {"ok": True})
    assert stage.controls.stopped


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"name": "gravity", "value": 1}, 409),
        *(({"name": "snr_db"} | rest, 400) for rest in ({}, {"value": [1]}, {"value": None})),
        ({"value": 1}, 400),
        ({"name": 1, "value": 1}, 400),
        ([], 400),
        ("snr_db", 400),
        # JSON has none of them, but Python writes and reads three
        *(({"name": "snr_db", "value": value}, 400) for value in (math.nan, math.inf, -math.inf)),
        (b'{"name": "snr_db", "value": 1e999}', 400),
    ],
)
def test_controls_that_are_none(stage: Stage, body: Any, status: int) -> None:
    data = body if isinstance(body, bytes) else json.dumps(body)
    kind = "application/json"
    answer = stage.page.client.post("/api/runs/live-run/controls", data=data, headers=HERE, content_type=kind)
    assert answer.status_code == status
    assert list(answer.json or {}) == ["error"]
    assert stage.controls.changes == []


def test_a_run_that_is_over_or_not_ours_cannot_be_steered(stage: Stage) -> None:
    body = {"name": "snr_db", "value": 1}
    assert stage.page.post("/api/runs/past-run/controls", body) == (409, {"error": "the run is over"})
    stage.feed.close()
    assert stage.page.post("/api/runs/live-run/stop", {}) == (409, {"error": "the run is over"})
    stage.hub.open(info("foreign"))
    assert stage.page.post("/api/runs/foreign/stop", {})[0] == 409
    assert not stage.controls.stopped


# -- what is not there ----------------------------------------------------------------------------------------------

UNKNOWN = ("nothing", "..", "%2e%2e", "..%2fpast-run", "past-run%00", "%0a", "a" * 300, "past-run%2f..", "café")


@pytest.mark.parametrize("path", ["/series", "/plot.png", "/export/tcp.csv", "/export/tcp.parquet", ""])
def test_unknown_runs(stage: Stage, path: str) -> None:
    for name in UNKNOWN:
        status, line = stage.page.problem(f"/api/runs/{name}{path}")
        assert status == 404
        assert name not in line


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("compare", 404),
        ("nothing", 404),
        ("runs/past-run/export/secrets.csv", 404),
        ("runs/past-run/export/tcp.xls", 404),
        ("runs/past-run/plot.gif", 404),
        ("runs/past-run/plot.png?charts=cwnd,<script>", 400),
        ("stream?run=a&run=b&run=c&run=d&run=e", 400),
        ("stream?run=live-run&history=long", 400),
        *((f"runs?{wanted}", 400) for wanted in ("sort=__class__", "page=0", "page=many", "finished=perhaps")),
    ],
)
def test_what_cannot_be_had_is_refused(stage: Stage, path: str, status: int) -> None:
    assert stage.page.problem(f"/api/{path}")[0] == status


def test_unknown_runs_are_named_as_such(stage: Stage) -> None:
    page = stage.page
    for path in ("runs/nothing", "compare?a=past-run&b=nothing", "runs/past-run/plot.png?b=nothing"):
        assert page.problem(f"/api/{path}") == (404, "there is no run of this name")
    assert page.problem("/api/stream?run=nothing") == (404, "there is no live run of this name")
    assert page.post("/api/runs/nothing/stop", {}) == (404, {"error": "there is no run of this name"})
    assert page.client.delete("/api/runs").status_code in (403, 405, 415)


def test_runs_without_records(stage: Stage) -> None:
    stage.hub.open(info("silent"))
    keep(stage.runs, "empty")
    for name in ("silent", "empty"):
        assert stage.page.problem(f"/api/runs/{name}/plot.png") == (404, "the run has no records to plot")
        assert stage.page.problem(f"/api/runs/{name}/export/tcp.csv")[0] == 404
        assert stage.page.get(f"/api/runs/{name}/series")["series"] == {}


def test_half_written_files(stage: Stage) -> None:
    file = stage.runs / "past-run" / "tcp.parquet"
    file.write_bytes(file.read_bytes()[:500])
    problem = "tcp.parquet is incomplete: the run was killed or goes on"
    assert stage.page.problem("/api/runs/past-run/export/tcp.csv") == (404, problem)
    found = stage.page.get("/api/runs/past-run/series")
    assert found["problem"] == problem
    assert "cwnd" not in found["series"]
    assert "goodput" in found["series"]


def test_damaged_records_make_no_csv(tmp_path: Path) -> None:
    damage(keep(tmp_path, "a-run", records(1, 30.0)) / "link.parquet")
    page = Page(application(tmp_path))
    assert page.problem("/api/runs/a-run/export/link.csv") == (404, "the records are damaged")


def test_a_fault_is_one_line_and_no_traceback(tmp_path: Path) -> None:
    def broken() -> dict[str, Any]:
        raise KeyError("secret")

    page = Page(application(tmp_path, database=broken))
    status, line = page.problem("/api/state")
    assert status == 500
    assert "secret" not in line


def test_what_the_page_is_made_of_must_be_installed(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="install Debian's libjs-dygraphs"):
        application(tmp_path, assets=tmp_path)


def test_the_page_and_its_parts(stage: Stage) -> None:
    page = stage.page.client.get("/")
    assert page.mimetype == "text/html"
    assert "style-src 'self'" in page.headers["Content-Security-Policy"]
    with stage.page.client.get("/assets/dygraphs/dygraph.min.js") as library:
        assert library.mimetype == "text/javascript"
    for outside in ("../jquery/jquery.js", "..%2f..%2f..%2fetc/passwd", "%2fetc%2fpasswd"):
        assert stage.page.client.get(f"/assets/dygraphs/{outside}").status_code == 404
