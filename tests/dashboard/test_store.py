"""Past runs: the list, what is in a folder, and folders that are broken."""

import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard import compare
from dashboard.curves import Mark
from dashboard.store import PAGE, Row, Store, StoreError, Wanted
from dashboard.thinning import thin, thin_marks
from tests.harness.dashboard_runs import damage, keep, records

AS_ROOT = os.geteuid() == 0
ROOT = Path(__file__).parents[2]


def names(store: Store, **wanted: Any) -> list[str]:
    return [row.name for row in store.list(Wanted(**wanted))["runs"]]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    keep(tmp_path, "1-lossy", scheme="none", seed=1, goodput_bps=0.7e6)
    keep(tmp_path, "2-lossy", scheme="slacp", seed=2, goodput_bps=1.7e6)
    keep(tmp_path, "3-fading", scenario="fading-link", tier="vusrp", tcp="bbr", seed=3, goodput_bps=1.1e6, changes=2)
    keep(tmp_path, "4-cut", seed=4, finished=False, goodput_bps=0.1e6)
    return tmp_path


# -- the list -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"text": "lossy slacp"}, ["2-lossy", "4-cut"]),
        ({"text": "FADING"}, ["3-fading"]),
        ({"facets": {"scheme": "none"}}, ["1-lossy"]),
        ({"facets": {"tier": "vusrp", "tcp": "bbr", "scenario": ""}}, ["3-fading"]),
        ({"facets": {"tier": "vusrp", "tcp": "cubic"}}, []),
        ({"finished": False}, ["4-cut"]),
        ({"finished": True, "facets": {"scenario": "lossy-link"}}, ["1-lossy", "2-lossy"]),
    ],
)
def test_filters(runs: Path, wanted: dict[str, Any], found: list[str]) -> None:
    assert sorted(names(Store([runs]), **wanted)) == found


def test_sorting(runs: Path) -> None:
    # the newest first
    assert names(Store([runs])) == ["4-cut", "3-fading", "2-lossy", "1-lossy"]
    (runs / "0-unknown").mkdir()
    (runs / "0-unknown" / "manifest.json").write_text("{}")
    store = Store([runs])
    assert names(store, sort="goodput_bps") == ["4-cut", "1-lossy", "3-fading", "2-lossy", "0-unknown"]
    assert names(store, sort="-goodput_bps") == ["2-lossy", "3-fading", "1-lossy", "4-cut", "0-unknown"]


def test_pages_and_what_can_be_filtered_by(tmp_path: Path) -> None:
    for number in range(PAGE + 3):
        keep(tmp_path, f"{number:03}-run", seed=number % 60, scheme="none" if number % 2 else "slacp")
    store = Store([tmp_path])
    first, second = (store.list(Wanted(sort="name", page=page)) for page in (1, 2))
    assert [row.name for row in first["runs"] + second["runs"]] == [f"{n:03}-run" for n in range(PAGE + 3)]
    assert first["total"] == PAGE + 3
    assert first["facets"] == {
        "tier": ["emulated"],
        "scheme": ["none", "slacp"],
        "scenario": ["lossy-link"],
        "tcp": ["cubic"],
    }
    assert store.list(Wanted(page=3))["runs"] == []


def test_a_run_is_what_its_files_say(runs: Path) -> None:
    found = {row.name: row for row in Store([runs]).rows()}
    assert found["3-fading"] == Row(
        name="3-fading",
        started="2026-11-21T12:00:03.000+00:00",
        scenario="fading-link",
        tier="vusrp",
        scheme="slacp",
        tcp="bbr",
        seed=3,
        goodput_bps=1.1e6,
        throughput_bps=1.9e6,
        duration_s=8.0,
        on_time=True,
        finished=True,
        intact=True,
        controlled=True,
    )
    assert not found["4-cut"].finished


def test_what_changes_is_read_again_and_what_goes_is_gone(runs: Path) -> None:
    store = Store([runs])
    before = {row.name: row for row in store.rows()}
    summary = runs / "1-lossy" / "summary.json"
    summary.write_text(json.dumps(json.loads(summary.read_text()) | {"goodput_bps": 123.0}))
    shutil.rmtree(runs / "2-lossy")
    after = {row.name: row for row in store.rows()}
    assert after["1-lossy"].goodput_bps == 123.0
    assert "2-lossy" not in after
    # what is as it was is not read again
    assert after["3-fading"] is before["3-fading"]


def test_several_roots_and_one_that_is_not_there(runs: Path, tmp_path: Path) -> None:
    keep(tmp_path / "more", "5-more", seed=5)
    store = Store([runs, tmp_path / "nowhere", tmp_path / "more"])
    assert names(store)[0] == "5-more"
    assert len(names(store)) == 5
    assert Store([tmp_path / "nowhere"]).list(Wanted())["total"] == 0


# -- broken folders ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spoilt", "problem"),
    [
        (None, "no result: the run failed, was stopped or goes on"),
        (b'{"run": "a', "summary.json is no JSON: half written, or damaged"),
        (b"\xff\xfe\x00", "summary.json is no JSON"),
        (b"[]", "summary.json holds no object"),
        (b"[" * 100_000, "summary.json is no JSON"),
        (b'{"goodput_bps": "much"}', "goodput_bps is of the wrong kind"),
        (b'{"finished": 1}', "finished is of the wrong kind"),
        ("a folder", "summary.json cannot be read"),
        ("without a manifest", "manifest.json is missing"),
    ],
    ids=str,
)
def test_a_broken_run_is_listed_with_its_problem(runs: Path, spoilt: bytes | str | None, problem: str) -> None:
    summary = runs / "2-lossy" / "summary.json"
    if spoilt == "without a manifest":
        (runs / "2-lossy" / "manifest.json").unlink()
    elif isinstance(spoilt, bytes):
        summary.write_bytes(spoilt)
    else:
        summary.unlink()
        if spoilt is not None:
            summary.mkdir()
    store = Store([runs])
    row = next(row for row in store.rows() if row.name == "2-lossy")
    assert problem in row.problem
    assert "\n" not in row.problem
    assert store.detail("2-lossy")["problem"] == row.problem
    assert len(store.rows()) == 4


def test_a_run_without_a_result_still_says_its_scheme(runs: Path) -> None:
    (runs / "1-lossy" / "summary.json").unlink()
    row = next(row for row in Store([runs]).rows() if row.name == "1-lossy")
    assert (row.scheme, row.tier, row.finished) == ("none", "emulated", False)


@pytest.mark.parametrize(
    "text", ["a: [", "\x00", "- a list", "a: !!python/object:os.system {}", "[" * 10_000, "- " * 10**6]
)
def test_a_scenario_that_is_none(runs: Path, text: str) -> None:
    (runs / "1-lossy" / "scenario.yaml").write_text(text)
    store = Store([runs])
    with pytest.raises(StoreError, match=r"scenario\.yaml"):
        store.scenario("1-lossy")
    assert store.detail("1-lossy")["scenario"] == text


def test_a_folder_that_may_not_be_looked_into_is_listed(runs: Path) -> None:
    look = """
import sys
from pathlib import Path
from dashboard.store import Store
store = Store([Path(sys.argv[1])])
detail = store.detail("2-lossy")
assert (detail["summary"], detail["files"], store.picture("2-lossy").problem) == (None, [], "")
print(next(row.problem for row in store.rows() if row.name == "2-lossy"))
"""
    # root may look into every folder by these capabilities; without them it is an owner like any other
    owner = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"] if AS_ROOT else []
    (runs / "2-lossy").chmod(0)
    try:
        command = [*owner, sys.executable, "-c", look, str(runs)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    finally:
        (runs / "2-lossy").chmod(0o755)
    assert done.stdout == "manifest.json cannot be read: Permission denied\n", done.stderr


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda folder: (folder / "link.parquet").read_bytes()[:-100], "is incomplete: the run was killed or goes on"),
        (lambda folder: b"", "is incomplete: the run was killed or goes on"),
        (lambda folder: b"no Parquet" * 50, "is incomplete: the run was killed or goes on"),
        (lambda folder: (folder / "flow.parquet").read_bytes(), "holds no link records"),
    ],
)
def test_records_that_cannot_be_read_are_left_out_and_said(tmp_path: Path, spoil: Any, problem: str) -> None:
    folder = keep(tmp_path, "a-run", records(1, 3.0))
    (folder / "link.parquet").write_bytes(spoil(folder))
    picture = Store([tmp_path]).picture("a-run")
    assert picture.problem == f"link.parquet {problem}"
    assert "goodput" in picture.charts()
    assert "throughput" not in picture.charts()


def test_a_damaged_page_of_records_is_said(tmp_path: Path) -> None:
    damage(keep(tmp_path, "a-run", records(1, 30.0)) / "link.parquet")
    assert Store([tmp_path]).picture("a-run").problem == "link.parquet is damaged"


def test_records_of_an_older_version_lack_what_it_did_not_record(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    folder = keep(tmp_path, "a-run", records(1, 3.0))
    table = pq.read_table(folder / "link.parquet")
    pq.write_table(table.drop_columns(["established", "residual_losses"]), folder / "link.parquet")
    picture = Store([tmp_path]).picture("a-run")
    assert picture.problem == ""
    assert {curve.label for curve in picture.curves if curve.chart == "per"} == {"up before", "down before"}


# -- names --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", "../1-lossy", "1-lossy/", "/etc", "1-lossy/../2-lossy", "1-lossy\x00", "1-lossy\n"),
        *(".hidden", "a" * 300, "link", "file", "plots"),
    ],
)
def test_only_folders_of_runs_are_found(runs: Path, name: str) -> None:
    (runs / "link").symlink_to("1-lossy")
    (runs / "file").write_text("")
    (runs / "plots").mkdir()
    (runs / "plots" / "a.png").write_bytes(b"")
    (runs / ".hidden").mkdir()
    (runs / ".hidden" / "manifest.json").write_text("{}")
    store = Store([runs])
    assert store.find(name) is None
    for ask in (store.detail, store.picture, store.scenario, lambda name: store.parquet(name, "tcp")):
        with pytest.raises(StoreError, match="no run of this name"):
            ask(name)
    assert len(store.rows()) == 4


# -- long runs ----------------------------------------------------------------------------------------------------


@given(st.lists(st.floats(-1e9, 1e9) | st.just(math.nan), max_size=300), st.integers(4, 50))
def test_thinning_keeps_extremes_and_ends(values: list[float], most: int) -> None:
    times = [float(n) for n in range(len(values))]
    thin_times, thin_values = thin(times, values, most)
    assert len(thin_times) == len(thin_values) <= max(most, 2)
    assert set(zip(thin_times, map(str, thin_values), strict=True)) <= set(zip(times, map(str, values), strict=True))
    assert thin_times == sorted(set(thin_times))
    known = [value for value in values if not math.isnan(value)]
    if known:
        kept = [value for value in thin_values if not math.isnan(value)]
        assert (min(kept), max(kept)) == (min(known), max(known))
    if values:
        assert (thin_times[0], thin_times[-1]) == (times[0], times[-1])


@given(
    st.lists(st.tuples(st.floats(0, 10), st.sampled_from("abc"), st.sampled_from(["up", "down"]), st.integers(1, 9)))
)
def test_thinned_marks_lose_no_loss(drawn: list[tuple[float, str, str, int]]) -> None:
    time_s = 0.0
    marks = []
    for gap_s, cause, link, count in drawn:
        time_s += gap_s
        marks.append(Mark(time_s, cause, link, count))

    def sums(some: list[Mark]) -> dict[tuple[str, str], int]:
        found: dict[tuple[str, str], int] = {}
        for mark in some:
            found[mark.cause, mark.link] = found.get((mark.cause, mark.link), 0) + mark.count
        return found

    thinned = thin_marks(marks, most=12)
    assert sums(thinned) == sums(marks)
    assert len(thinned) <= max(12 + 6, 1)
    assert [mark.t for mark in thinned] == sorted(mark.t for mark in thinned)


# -- comparison -----------------------------------------------------------------------------------------------------


def test_figures_of_two_runs() -> None:
    a = {"goodput_bps": 0.5e6, "timeouts": 0, "link": {"up": {"per": 0.04}}}
    b = {"goodput_bps": 1.5e6, "timeouts": 2, "link": {"up": {"per": 0.05}}, "duration_s": 8.0}
    rows = {row["key"]: row for row in compare.figures(a, b)}
    assert rows["goodput_bps"] == {
        "key": "goodput_bps",
        "figure": "goodput",
        "unit": "bit/s",
        "a": 0.5e6,
        "b": 1.5e6,
        "ratio": 3.0,
    }
    assert rows["timeouts"]["ratio"] is None
    assert (rows["duration_s"]["a"], rows["duration_s"]["b"], rows["duration_s"]["ratio"]) == (None, 8.0, None)
    assert (rows["link.up.per"]["a"], rows["link.up.per"]["unit"]) == (4.0, "%")
    assert "link.down.per" not in rows
    assert compare.figures(None, {"goodput_bps": "much"}) == []


def test_scenarios_differ_in_what_differs() -> None:
    a = {"name": "x", "link": {"scheme": "none"}, "workloads": [{"kind": "bulk"}], "errors": {}}
    b = {"name": "x", "link": {"scheme": "slacp", "fast": [44]}, "workloads": [{"kind": "short"}], "errors": {}}
    assert compare.differences(a, b) == [
        {"key": "link.scheme", "a": "none", "b": "slacp"},
        {"key": "workloads.0.kind", "a": "bulk", "b": "short"},
        {"key": "link.fast.0", "a": None, "b": 44},
    ]
    assert compare.differences(a, a) == []
