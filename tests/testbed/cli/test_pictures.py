"""The pictures of the dashboard are those of the page as it is."""

import shutil
from pathlib import Path

import pytest

from dashboard.breaks import BREAKS
from testbed.cli.docs import pictures
from testbed.cli.docs.pictures import PICTURES, RECORD, digest, stale
from testbed.cli.options import DEMO_SCENARIOS, DEMO_TIER
from testbed.scenario.file import load

ROOT = Path(__file__).parents[3]


def test_pictures_are_those_of_the_page() -> None:
    assert stale(ROOT) == [], "the page has changed: make its pictures anew, by ./fadelab docs --pictures"


def test_documents_show_every_picture() -> None:
    documents = "".join(path.read_text() for path in (ROOT / "docs" / "dashboard.md", ROOT / "README.md"))
    assert [picture.name for picture in PICTURES if picture.name not in documents] == []


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what the record is about."""
    for name in ("dashboard/static", "dashboard/templates"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / "docs").mkdir()
    for path in (RECORD, *(Path("docs") / picture.name for picture in PICTURES)):
        shutil.copy(ROOT / path, tmp_path / path)
    return tmp_path


@pytest.mark.parametrize("name", ["static/chart.js", "static/live.css", "templates/index.html"])
def test_changed_page_and_changed_picture_are_noticed(checkout: Path, name: str) -> None:
    before = digest(checkout)
    page = checkout / "dashboard" / name
    comment = "<!-- why -->" if page.suffix == ".html" else "/* why */"
    page.write_text(f"{comment}\n\n{page.read_text()}\n")
    assert digest(checkout) == before
    page.write_text(page.read_text() + "new\n")
    assert digest(checkout) != before
    (checkout / "docs" / PICTURES[1].name).write_bytes(b"another")
    assert stale(checkout) == ["the page", PICTURES[1].name]
    # a page saved for others is not the page
    copy = checkout / "dashboard" / "templates" / "saved.css"
    again = digest(checkout)
    copy.write_text("")
    assert digest(checkout) == again


def test_scheduled_breaks_are_the_presenters() -> None:
    scenario = load(DEMO_SCENARIOS[DEMO_TIER])
    changes = pictures.schedule(scenario)
    values = [value for change in changes for value in change["set"].values()]
    assert values[::2] == [each.value / (100 if each.control == "per" else 1) for each in BREAKS]
    begins, ends = [change["at_s"] for change in changes[::2]], [change["at_s"] for change in changes[1::2]]
    assert [end - begin for begin, end in zip(begins, ends, strict=True)] == [each.seconds for each in BREAKS]
    assert all(end < begin for end, begin in zip(ends, begins[1:], strict=False))
