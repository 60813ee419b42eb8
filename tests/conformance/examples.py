"""A copy of the checkout for the examples of documents: their files are put in place, and their commands are run."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
_PROGRAMS = {"./fadelab": ["-m", "testbed"], "pytest": ["-m", "pytest", "-p", "no:cacheprovider"]}


def copied(place: Path) -> Path:
    """Copy the checkout to `place`, with what is built; returns the copy."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    files = [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]
    copy = place / "checkout"
    (copy / ".build").mkdir(parents=True)
    # with their times, by which Python knows whether bytecode is a file's
    cp = ("cp", "--parents", "--no-dereference", "--preserve=timestamps")
    subprocess.run([*cp, *files, copy], cwd=ROOT, check=True)
    if sys.pycache_prefix is not None:
        _share_bytecode(sys.pycache_prefix, copy, files)
    for built in (".build/compiled", ".build/native", ".build/vusrp"):
        if (ROOT / built).exists():
            (copy / built).symlink_to((ROOT / built).resolve())
    subprocess.run(["git", "init", "-q"], cwd=copy, check=True)
    commit(copy)
    return copy


def _bytecode(checkout: Path) -> Path:
    """The folder of a copy's bytecode (PYTHONPYCACHEPREFIX)."""
    return checkout / ".build" / "pycache"


def _share_bytecode(ours: str, copy: Path, files: Sequence[str]) -> None:
    """Spare the copy to compile what is as it was. Python writes bytecode to a new file, not through a link."""
    for libraries in {sys.prefix, sys.base_prefix}:
        link = Path(f"{_bytecode(copy)}{libraries}")
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(f"{ours}{libraries}")
    for folder in {Path(name).parent for name in files if name.endswith(".py")}:
        theirs = Path(f"{_bytecode(copy)}{copy}") / folder
        theirs.mkdir(parents=True, exist_ok=True)
        for compiled in (Path(f"{ours}{ROOT}") / folder).glob("*.pyc"):
            (theirs / compiled.name).symlink_to(compiled)


def commit(checkout: Path) -> None:
    author = ("-c", "user.name=fadelab", "-c", "user.email=fadelab@localhost")
    for words in (("add", "-A"), (*author, "commit", "-qm", "as it is")):
        subprocess.run(["git", *words], cwd=checkout, check=True)


def put(path: Path, text: str) -> None:
    """Write a file of an example, which must be a new one."""
    assert not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def run(
    words: Sequence[str], checkout: Path, *, pure: bool = True, limit_s: float = 250
) -> "subprocess.CompletedProcess[str]":
    """Run `./fadelab`, `pytest` or a program of Python in a copy of the checkout; its cores are interpreted if
    `pure`."""
    program, *rest = words
    own = {
        "FADELAB_ROOT": str(checkout),
        "FADELAB_PURE": "1" if pure else "0",
        "PYTHONPATH": f"{checkout}:{os.environ.get('PYTHONPATH', '')}",
        "PYTHONPYCACHEPREFIX": str(_bytecode(checkout)),
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, "-P", *_PROGRAMS.get(program, []), *rest],
        cwd=checkout,
        env=kept | own,
        capture_output=True,
        text=True,
        check=False,
        timeout=limit_s,
    )
