"""The documents: their links lead somewhere, and the files they name exist."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: the folders of the checkout; documents write their paths in full
ROOMS = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")} - {"runs"}
DOCUMENTS = [*ROOT.glob("*.md"), *(path for room in sorted(ROOMS) for path in (ROOT / room).rglob("*.md"))]


def prose(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(document: Path) -> set[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", prose(document.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def leads_nowhere(document: Path, target: str) -> bool:
    path, _, anchor = target.partition("#")
    found = document.parent / path if path else document
    return not found.exists() or (anchor != "" and anchor not in anchors(found))


def test_links_lead_to_files_and_headings() -> None:
    links = [
        (document, target)
        for document in DOCUMENTS
        for target in re.findall(r"\]\(([^)\s]+)\)", prose(document.read_text()))
        if not re.match(r"[a-z]+:", target)
    ]
    assert [(str(document), target) for document, target in links if leads_nowhere(document, target)] == []


def test_paths_in_documents_exist() -> None:
    missing = []
    for document in DOCUMENTS:
        text = document.read_text()
        # the files that an example of the document makes
        made = set(re.findall(r"^# (\S+)$", text, re.MULTILINE))
        for path in re.findall(r"`([\w.-]+/[\w./-]+)`", prose(text)):
            if path.split("/")[0] in ROOMS and path not in made:
                missing += [] if (ROOT / path).exists() or (document.parent / path).exists() else [(document, path)]
    assert missing == []
