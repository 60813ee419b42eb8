"""Tells the page the stories of losses, by a process of its own: runs that go on must not wait for it.

    Stories.tell ─► a line of JSON: folder, time_s, direction ─► story_process ─► a line of JSON: story, or error

The process begins with the first story. It has the newest run in memory, so that the next click is answered at once.
"""

import json
import select
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from dashboard.control import ControlError
from testbed.paths import root

#: a run of tier model is simulated again for its first story
_PATIENCE_S: Final = 300.0


class Stories:
    """Tells stories, one at a time; its methods may be called from any thread."""

    def __init__(self, patience_s: float = _PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def tell(self, folder: Path, time_s: float, direction: str) -> Mapping[str, Any]:
        """Return the story of the lost frame nearest to a time (s), as `explain --json` prints it.

        `direction`: up, down, or empty for both. Raises ControlError in one line.
        """
        order = {"folder": str(folder.absolute()), "time_s": time_s, "direction": direction}
        with self._lock:
            # one that began with other sources, or was killed, gives no answer
            answer = self._ask(order, folder.name) or self._ask(order, folder.name)
        if answer is None:
            raise ControlError(f"the story could not be told: ask for it with ./fadelab explain {folder.name}")
        if "error" in answer:
            raise ControlError(answer["error"])
        story: Mapping[str, Any] = answer["story"]
        return story

    def close(self) -> None:
        """End the process; a story that is being told is not told to the end."""
        process = self._process
        if process is not None:
            process.kill()
        with self._lock:
            self._end()

    def _ask(self, order: Mapping[str, Any], run: str) -> dict[str, Any] | None:
        """Return the answer to an order; None where the process has ended instead. Raises ControlError."""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(order).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            self._end()
            return None
        if not select.select([process.stdout], [], [], self._patience_s)[0]:
            self._end()
            raise ControlError(f"the story takes long: ask for it with ./fadelab explain {run}")
        line = process.stdout.readline()
        if not line.endswith(b"\n"):
            self._end()
            return None
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _started(self) -> "subprocess.Popen[bytes]":
        if self._process is None:
            self._process = subprocess.Popen(
                ["nice", sys.executable, "-m", "testbed.cli.dashboard.story_process"],
                cwd=root(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        return self._process

    def _end(self) -> None:
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except BrokenPipeError:
                # what was to be written
                continue
        self._process = None
