"""Campaigns below the run store (docs/campaigns.md): which there are, and how far those are that go on.

Rules kept
- A campaign is a folder directly below the store with a `plan.json`.
- It goes on while a process holds the lock of its folder. Looking at /proc/locks never gets into the way of a
  process that wants the lock.
- Nothing is computed here: `progress.json` is written by the campaign's command.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from common.plain_json import object_of
from dashboard.run_folders import is_part

PLAN = "plan.json"
_LOCKS = Path("/proc/locks")
#: the beginning of results.json, which says whether the campaign is complete
_HEAD_BYTES = 1000
_COMPLETE = re.compile(r'"complete": true')
_NUMBERS = ("planned", "runs_per_s", "elapsed_s", "left_s", "run_elapsed_s", "run_goodput_bps")


@dataclass(frozen=True, slots=True)
class Campaign:
    """One campaign in the list; unknown values are None."""

    name: str
    state: Literal["going on", "complete", "interrupted"]
    ended: int
    failed: int
    planned: float | None = None
    runs_per_s: float | None = None
    #: since its command began, and until it ends
    elapsed_s: float | None = None
    left_s: float | None = None
    #: the real-time run that is under way
    run: str = ""
    run_elapsed_s: float | None = None
    run_goodput_bps: float | None = None


def is_campaign(folder: Path) -> bool:
    """Whether a folder is a campaign's."""
    return (folder / PLAN).exists()


def campaigns(store: Path) -> list[Campaign]:
    """Return all campaigns below a folder, those that go on first, then by name."""
    locked = set(_locked())
    try:
        folders = [path for path in store.iterdir() if is_campaign(path)]
    except OSError:
        # a store before its first run
        return []
    found = [_campaign(folder, going_on=_inode(folder / "lock") in locked) for folder in folders]
    return sorted(found, key=lambda each: (each.state != "going on", each.name))


def _campaign(folder: Path, *, going_on: bool) -> Campaign:
    progress = _read(folder / "progress.json")
    if going_on and progress:
        return Campaign(
            name=folder.name,
            state="going on",
            ended=_count(progress.get("ended")),
            failed=_count(progress.get("failed")),
            run=str(progress.get("run") or ""),
            **{key: progress[key] for key in _NUMBERS if isinstance(progress.get(key), int | float)},
        )
    done, failed = (_entries(folder / part) for part in ("runs", "failed"))
    complete = not going_on and _complete(folder / "results.json")
    state: Literal["going on", "complete", "interrupted"] = "complete" if complete else "interrupted"
    ended = done + failed
    return Campaign(folder.name, "going on" if going_on else state, ended, failed, ended if complete else None)


def _read(path: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        if is_part(path):
            return object_of(path.read_text())
    return {}


def _count(found: object) -> int:
    return found if isinstance(found, int) else 0


def _entries(folder: Path) -> int:
    with suppress(OSError):
        return sum(1 for _ in folder.iterdir())
    return 0


def _complete(path: Path) -> bool:
    if not is_part(path):
        return False
    with suppress(OSError), path.open(errors="replace") as file:
        return _COMPLETE.search(file.read(_HEAD_BYTES)) is not None
    return False


def _inode(path: Path) -> int | None:
    with suppress(OSError):
        return path.stat().st_ino
    return None


def _locked() -> Iterator[int]:
    """Yield the inodes of files with a lock (proc(5): the sixth field is device and inode)."""
    try:
        lines = _LOCKS.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        fields = line.split()
        if len(fields) > 5 and fields[1] == "FLOCK":
            yield int(fields[5].rpartition(":")[2])
