"""The documents as a site: it builds without a warning, needs no network, and can be searched."""

import re
import socket
import threading
from collections.abc import Iterator
from dataclasses import fields
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import expect, sync_playwright

from common.options import Positive, Probability, Span
from testbed.cli import app
from testbed.cli.docs import keys, pages, reference, site, tables
from testbed.cli.docs.chromium import CHROMIUM, FLAGS
from testbed.errors import FadelabError
from testbed.scenario.schema import Channel, Scenario
from tests.conformance.options import KINDS, every_plugin
from tests.conformance.options import Kind as PluginKind
from tests.harness.live_runs import Capture, refused

ROOT = Path(__file__).parents[3]
NAV = ROOT / "docs" / "nav.yml"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, made by the command."""
    target = tmp_path_factory.mktemp("docs") / "site"
    assert app.main(["docs", "--out", str(target)]) == 0
    return target


@pytest.fixture
def url(built: Path) -> Iterator[str]:
    """The site, served on a free port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(built))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


@pytest.mark.slow
def test_every_document_is_a_page(built: Path) -> None:
    for document in (ROOT / "docs").rglob("*.md"):
        page = built / document.relative_to(ROOT).with_suffix(".html")
        if page.name == "README.html":
            page = page.with_name("index.html")
        assert page.exists(), document
    assert (built / "docs" / "reference.html").exists()
    assert (built / "docs" / "notebooks" / "loss-and-repair.ipynb").exists()


@pytest.mark.slow
def test_nothing_is_loaded_from_elsewhere(built: Path) -> None:
    loading = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*?(?:src|href)=[\"']?(?:https?:)?//[^>]*>")
    for page in built.rglob("*.html"):
        found = [tag for tag in loading.findall(page.read_text()) if 'rel="canonical"' not in tag]
        assert found == [], page
    for style in built.rglob("*.css"):
        assert not re.search(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", style.read_text()), style


@pytest.mark.slow
@pytest.mark.patient
def test_a_reader_finds_a_page_by_search_served_and_from_the_disk(url: str, built: Path) -> None:
    asked: list[str] = []
    failures: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: failures.append(str(error)))
        for place in (url, f"{built.as_uri()}/"):
            page.goto(f"{place}index.html")
            expect(page.get_by_role("heading", name="fadelab")).to_be_visible()
            # by keys, which the search listens to, and not by `fill`, which has none
            page.get_by_role("textbox", name="Search").press_sequentially("attenuation")
            page.locator(".md-search-result__link", has_text="Hardware guide").first.click()
            expect(page).to_have_url(re.compile(rf"{re.escape(place)}docs/hardware\.html"))
            expect(page.get_by_role("heading", name="Cabling")).to_be_visible()
        page.goto(f"{url}docs/architecture.html")
        picture = page.locator('img[src$="architecture.svg"]')
        expect(picture).to_be_visible()
        assert picture.evaluate("image => image.naturalWidth") > 0
        browser.close()
    assert failures == []
    assert [address for address in asked if not address.startswith((url, built.as_uri(), "data:"))] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[away](no-such-page.md)", "no-such-page.md"),
        ("[there](start.md#no-such-heading)", "no-such-heading"),
        ("![none](none.png)", "none.png"),
    ],
)
def test_a_broken_link_fails_the_build(
    text: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    checkout = tmp_path / "checkout"
    (checkout / "docs").mkdir(parents=True)
    (checkout / "README.md").write_text(f"# A\n\n{text.replace('start.md', 'docs/start.md')}\n")
    # the reference links to the others
    for name in ("start", "scenarios", "hosts", "tcp", "ofdm", "wifi"):
        (checkout / "docs" / f"{name}.md").write_text(f"# {name}\n")
    (checkout / "docs" / "nav.yml").write_text("- Home: README.md\n")
    monkeypatch.setattr(site, "root", lambda: checkout)
    said = refused(capsys, "docs", "--out", tmp_path / "site")
    assert said.startswith("fadelab: the site cannot be built: ")
    assert complaint in said


def test_a_folder_with_other_files_is_not_emptied(tmp_path: Path, capsys: Capture) -> None:
    mine = tmp_path / "thesis.tex"
    mine.write_text("written")
    assert "holds other files, which would be lost" in refused(capsys, "docs", "--out", tmp_path)
    assert mine.read_text() == "written"


def test_a_port_in_use_is_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(FadelabError, match="choose another --port"):
        site.serve(tmp_path, taken.getsockname()[1])


def test_navigation_names_pages_takes_patterns_and_forgets_none(tmp_path: Path) -> None:
    order = tmp_path / "nav.yml"
    order.write_text(yaml.safe_dump([{"Home": "a.md"}, {"Part": [{"Two": "how/b.md"}, "how/*.md"]}]))
    found = pages.navigation(order, ["a.md", "how/a.md", "how/b.md", "z.md"])
    assert found == [{"Home": "a.md"}, {"Part": [{"Two": "how/b.md"}, "how/a.md"]}, {"More": ["z.md"]}]
    with pytest.raises(FadelabError, match=r"how/b\.md is no page of the site"):
        pages.navigation(order, ["a.md"])


@pytest.fixture(scope="module")
def text() -> str:
    """The scenario reference."""
    return reference.reference()


def test_the_reference_has_every_key_of_a_scenario(text: str) -> None:
    for name in (*Scenario.model_fields, *Channel.model_fields):
        assert f"| `{name}` |" in text


@every_plugin(KINDS)
def test_the_reference_has_every_plugin_with_its_options(kind: PluginKind, name: str, text: str) -> None:
    place = kind.name_at.replace("workloads.0", "workloads-n").replace(".", "-")
    [_, section] = text.split(f"### `{name}` {{: #{place}-{name} }}")
    section = section.partition("\n#")[0]
    options = getattr(kind.registry[name], "options", None)
    for option in () if options is None else fields(options):
        assert f"| `{option.name}` |" in section


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        (Positive, "number, above 0"),
        (Span, "list of number, 0 or more, shortest and longest"),
        (int | None, "whole number"),
        (Probability, "number, 0 to 1"),
        (tuple[str, ...], "list of text"),
        (dict[str, int], "mapping"),
    ],
)
def test_types_are_told_in_words(hint: object, words: str) -> None:
    assert keys.words(hint) == words


def test_the_reference_tells_defaults_ranges_and_meanings(text: str) -> None:
    lines = text.splitlines()
    assert "| `late_bound_ms` | number, above 0 | `10` | an event later than this is late |" in lines
    assert "| `interval_ms` | number, 1e-06 or more | `10` | each interval's opportunities are served evenly |" in lines
    assert "| `channel` | mapping | required |  |" in lines


def test_each_null_of_the_reference_has_a_meaning(text: str) -> None:
    nulls = [line for line in text.splitlines() if "| `null` |" in line]
    assert len(nulls) > 30
    assert [line for line in nulls if "`null`: " not in line] == []


def test_documents_and_boards_have_plugins_as_they_are_declared() -> None:
    """A plugin is one file, so it may be missing there yet."""
    for path, text in tables.generated(ROOT, only_present=True).items():
        assert path.read_text() == text, f"{path}: run ./fadelab docs --write"


def test_a_row_that_is_stale_or_of_no_plugin_is_found_and_a_missing_one_is_added() -> None:
    head, rows = tables.table("queues")
    text = f"before\n<!-- table: queues -->\n{head}{''.join(rows)}<!-- end of table -->\nbehind\n"
    assert tables.filled(text) == tables.filled(text, only_present=True) == text
    for changed in (text.replace("too long", "for long"), text.replace(rows[0], "| `gone` | | never |\n")):
        assert tables.filled(changed, only_present=True) != changed
        assert tables.filled(changed) == text
    without = text.replace(rows[-1], "")
    assert tables.filled(without, only_present=True) == without
    assert tables.filled(without) == text


def test_every_kind_of_plugin_has_its_table_in_a_document() -> None:
    names = [name for path in tables.documents(ROOT) for name in re.findall("<!-- table: (.*) -->", path.read_text())]
    assert sorted(names) == sorted(tables.names())
