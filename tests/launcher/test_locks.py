"""The locks of Python packages hold what pyproject.toml names, each package once, in the group that needs it."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def locked(name: str) -> dict[str, str]:
    blocks = re.split(r"(?m)^(?=[a-z0-9])", (ROOT / name).read_text())[1:]
    return {block.partition("==")[0]: block for block in blocks}


BASE, FULL = locked("requirements.lock"), locked("requirements-full.lock")


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[<>=\[]", one)[0] for one in requirements}


def test_locks_hold_what_the_project_needs_and_share_nothing() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert names(project["dependencies"]) <= BASE.keys()
    extras = set[str]().union(*map(names, project["optional-dependencies"].values()))
    assert extras <= FULL.keys()
    assert not BASE.keys() & FULL.keys()


@pytest.mark.parametrize("lock", [BASE, FULL], ids=["base", "full"])
def test_every_package_has_hashes(lock: dict[str, str]) -> None:
    assert [name for name, block in lock.items() if "--hash=sha256:" not in block] == []


def test_no_package_of_the_base_lock_is_needed_by_the_other_alone() -> None:
    for name, block in BASE.items():
        needed_by = set(re.findall(r"(?m)^    #(?: via|  ) ?([\w.-]+)", block))
        assert needed_by, name
        assert not needed_by & FULL.keys(), name
