"""The tables of docs/tcp.md that name plugins of the userspace TCP."""

import re
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs" / "tcp.md"


def rows(kind: str) -> dict[str, str]:
    """The summaries by name in the table whose first heading is `kind`; a row may have several names."""
    text = DOCUMENT.read_text()
    table = re.search(rf"^\| `?{kind}`? \| summary \|\n\|---\|---\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert table is not None
    found: dict[str, str] = {}
    for row in table[1].splitlines():
        names, summary = row.strip("| ").split(" | ")
        found |= dict.fromkeys(re.findall(r"`([^`]+)`", names), summary)
    return found
