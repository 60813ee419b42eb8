"""Tells the page the story of a loss, by `explain` in a process of its own: runs that go on must not wait for it."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from dashboard.control import ControlError
from testbed.paths import root

#: a run of tier model is simulated again for its first story
_PATIENCE_S: Final = 300.0


def tell(folder: Path, time_s: float, direction: str) -> Mapping[str, Any]:
    """Return the story of the lost frame nearest to a time (s), as `explain --json` prints it.

    `direction`: up, down, or empty for both. Raises ControlError in one line.
    """
    command = [sys.executable, "-m", "testbed", "explain", str(folder.absolute()), f"--time={time_s}", "--json"]
    if direction:
        command.append(f"--direction={direction}")
    try:
        done = subprocess.run(
            ["nice", *command], cwd=root(), capture_output=True, text=True, timeout=_PATIENCE_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise ControlError(f"the story takes long: ask for it with ./fadelab explain {folder.name}") from None
    if done.returncode:
        raise ControlError(done.stderr.strip().rpartition("\n")[2].removeprefix("fadelab: "))
    story: dict[str, Any] = json.loads(done.stdout)
    return story
