"""The pages of the site: the documents of the checkout, where they are, so that their links stay as they are.

Rules kept: a page is README.md, a document in docs/, or a document that a page links to. Other files that pages link to
are copied. Tables of plugins have all rows (`tables.py`). In docs/nav.yml a path with `*` stands for all pages that
match it and are not named. A page that it does not name at all comes last.
"""

import re
import shutil
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from testbed.cli.docs.reference import reference
from testbed.cli.docs.tables import filled
from testbed.errors import FadelabError

#: where the generated page is among the others
REFERENCE = "docs/reference.md"
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_ABSOLUTE = re.compile(r"[a-z]+:")


def stage(checkout: Path, target: Path) -> list[str]:
    """Copy all pages, and the files they show, into an empty folder; return the pages' paths."""
    found: dict[str, None] = {}
    waiting = [checkout / "README.md", *sorted((checkout / "docs").rglob("*.md"))]
    while waiting:
        source = waiting.pop(0)
        name = source.relative_to(checkout).as_posix()
        if name in found:
            continue
        found[name] = None
        copy = target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            copy.write_text(filled(source.read_text()))
            waiting += _linked(source, checkout)
        else:
            shutil.copyfile(source, copy)
    (target / REFERENCE).write_text(reference())
    return [*(name for name in found if name.endswith(".md")), REFERENCE]


def _linked(page: Path, checkout: Path) -> Iterator[Path]:
    """Yield the files of the checkout that a page links to."""
    for link in _LINK.findall(_FENCE.sub("", page.read_text())):
        path = link.partition("#")[0]
        if not path or _ABSOLUTE.match(path):
            continue
        linked = (page.parent / path).resolve()
        if linked.is_file() and linked.is_relative_to(checkout):
            yield linked


def navigation(order: Path, pages: list[str]) -> list[Any]:
    """Return the pages in the order of docs/nav.yml. Raises FadelabError when it names a page that is not there."""
    nav = yaml.safe_load(order.read_text())
    named = [name for name in _names(nav) if "*" not in name]
    for name in named:
        if name not in pages:
            raise FadelabError(f"{order}: {name} is no page of the site")
    rest = [name for name in pages if name not in named]
    filled: list[Any] = _filled(nav, rest)
    return [*filled, {"More": rest}] if rest else filled


def _filled(nav: Any, rest: list[str]) -> Any:
    """Return part of a navigation with patterns replaced by pages of `rest`, which are taken from there."""
    if isinstance(nav, dict):
        return {title: _filled(inner, rest) for title, inner in nav.items()}
    if not isinstance(nav, list):
        return nav
    found: list[Any] = []
    for entry in nav:
        if isinstance(entry, str) and "*" in entry:
            matching = [name for name in rest if fnmatchcase(name, entry)]
            rest[:] = [name for name in rest if name not in matching]
            found += matching
        else:
            found.append(_filled(entry, rest))
    return found


def _names(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict):
        for inner in nav.values():
            yield from _names(inner)
    else:
        for inner in nav:
            yield from _names(inner)
