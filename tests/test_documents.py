"""The documents: their links lead somewhere, and the files they name exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
#: the folders of the checkout; documents write their paths in full
ROOMS = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")} - {"runs"}
FOUND = [*ROOT.glob("*.md"), *(path for room in sorted(ROOMS) for path in (ROOT / room).rglob("*.md"))]
DOCUMENTS = [str(path.relative_to(ROOT)) for path in FOUND]


def prose(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(document: Path) -> set[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", prose(document.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_to_files_and_headings(name: str) -> None:
    document = ROOT / name
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(document.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        found = document.parent / path if path else document
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


@pytest.mark.parametrize("name", DOCUMENTS)
def test_paths_in_documents_exist(name: str) -> None:
    text = (ROOT / name).read_text()
    # the files that an example of the document makes
    made = set(re.findall(r"^# (\S+)$", text, re.MULTILINE))
    for path in re.findall(r"`([\w.-]+/[\w./-]+)`", prose(text)):
        if path.split("/")[0] in ROOMS and path not in made:
            assert (ROOT / path).exists() or (ROOT / name).parent.joinpath(path).exists(), path
