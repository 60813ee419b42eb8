"""A run saved as one HTML file: what it says, what it does not say, and that it needs nothing beside it."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from dashboard.saved_page import _without_paths
from tests.harness.dashboard_runs import keep, records
from tests.harness.live_runs import Capture, done, refused

pytestmark = pytest.mark.patient

A, B = (f"20260102-0{minute}05-sample-emulated-{scheme}-s1" for minute, scheme in ((304, "none"), (305, "slacp")))
SECRET = "correct-horse-battery-staple"
HOME = "/home/somebody/secret-place"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    runs = tmp_path / "runs"
    for name, scheme, goodput_bps in ((A, "none", 0.6e6), (B, "slacp", 1.8e6)):
        folder = keep(runs, name, records(1, 3.0), scheme=scheme, goodput_bps=goodput_bps, scenario="sample")
        manifest = json.loads((folder / "manifest.json").read_text())
        manifest |= {
            "command": ["fadelab", "run", f"{HOME}/a.yaml", "--token-file", SECRET],
            "versions": {"fadelab": "0.9.0+abcdef1", "kernel": "6.1"},
        }
        (folder / "manifest.json").write_text(json.dumps(manifest))
        with (folder / "scenario.yaml").open("a") as scenario:
            scenario.write(f"channel:\n  errors: {{model: trace, path: {HOME}/{scheme}.parquet, by: index}}\n")
            scenario.write("description: <script>alert(1)</script> at 1/2 of 2 Mbit/s\n")
    return runs


@pytest.mark.slow
def test_comparison_is_a_file_that_needs_nothing_and_says_nothing_of_the_machine(
    browser: Browser, store: Path, tmp_path: Path, capsys: Capture
) -> None:
    file = tmp_path / "both.html"
    done(capsys, "runs", "export", A, B, "--out", store, "--html", file)
    text = file.read_text()
    assert SECRET not in text
    assert HOME not in text
    # it may name namespaces of XML, which nothing asks for
    assert set(re.findall(r"https?://[^\"'\s<>]+", text)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
    }
    complaints: list[str] = []
    asked: list[str] = []
    with browser.new_context(viewport={"width": 390, "height": 844}) as window:
        page = window.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(file.as_uri())
        for name in (A, B):
            expect(page.get_by_role("heading", name=name)).to_be_visible()
        facts = page.locator(".run").first
        for fact in ("tier emulated", "seed 1", "fadelab 0.9.0+abcdef1", "kernel 6.1"):
            name, value = fact.split(" ", 1)
            expect(facts.locator("dl div").filter(has_text=name).filter(has_text=value)).not_to_have_count(0)
        expect(page.get_by_role("row", name="goodput 600 kbit/s 1.8 Mbit/s 3 ×")).to_have_count(1)
        expect(page.get_by_role("row", name="link.scheme")).to_contain_text('"none"')
        assert page.locator("figure svg path").count() > 20
        pre = page.locator("pre").first
        expect(pre).to_contain_text("path: …/none.parquet")
        expect(pre).to_contain_text("<script>alert(1)</script> at 1/2 of 2 Mbit/s")
        assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert (complaints, asked) == ([], [file.as_uri()])


def test_delays_under_load_are_drawn_and_told(store: Path, tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "page.html"
    places = {"n": 5000, "mean_ms": 40.0, "p50_ms": 31.5, "p95_ms": 88.0, "p99_ms": 120.25}
    for name, factor in ((A, 3.0), (B, 1.0)):
        told = json.loads((store / name / "summary.json").read_text())
        told["quality"] = {"one_way": places | {"p99_ms": factor * places["p99_ms"]}, "round_trip": None}
        (store / name / "summary.json").write_text(json.dumps(told))
    done(capsys, "runs", "export", A, B, "--out", store, "--html", file)
    text = file.read_text()
    assert text.count("<svg") == 2
    # an element's name is its own, though the charts have the same maker
    names = re.findall(r' id="([^"]+)"', text)
    assert len(set(names)) == len(names)
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', text)) <= set(names)
    drawn = text[text.index('aria-label="Delays under load"') :]
    for line in ("no repair: one way", "SLACP: one way", "360.8 ms", "120.2 ms"):
        assert line in drawn
    assert re.search(r'<th scope="row">one way</th><td>SLACP</td><td>5,000</td><td>31.5 ms</td>', drawn)


def test_what_cannot_be_saved_is_one_line(store: Path, tmp_path: Path, capsys: Capture) -> None:
    one = tmp_path / "one.html"
    assert "3 runs: a page shows one run or compares two" in refused(
        capsys, "runs", "export", A, B, A, "--out", store, "--html", one
    )
    assert "cannot be written: No such file or directory" in refused(
        capsys, "runs", "export", A, "--out", store, "--html", tmp_path / "nowhere" / "one.html"
    )
    # without a result and without records
    for path in (*(store / A).glob("*.parquet"), store / A / "summary.json"):
        path.unlink()
    done(capsys, "runs", "export", A, "--out", store, "--html", one)
    assert "no result" in one.read_text()
    assert "<svg" not in one.read_text()


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("path: /a/b/c.parquet", "path: …/c.parquet"),
        ("'~/runs/x y", "'…/x y"),
        ('["../up/a.yaml"]', '["…/a.yaml"]'),
        ("error:/home/bob/x: no such file", "error:…/x: no such file"),
        ("in '/home/bob', /root", "in '…', …"),
        ("2 Mbit/s at 1/2, https://example.org/a/b", "2 Mbit/s at 1/2, https://example.org/a/b"),
    ],
)
def test_paths_lose_their_folders(text: str, left: str) -> None:
    assert _without_paths(text) == left
