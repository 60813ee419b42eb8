"""The child processes of a run: messages both ways (`hosts/messages.py`), and an end that is certain."""

import contextlib
import os
import select
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from common.closing import Closing
from hosts.messages import Decoder, Error, FromProcess, ToProcess, encode
from testbed import interrupts
from testbed.errors import FadelabError
from testbed.live import copies
from testbed.paths import root

#: how long a process may take to end by itself
_END_TIMEOUT_S = 5.0
#: how long it may take to read a message, when its pipe is full
_SEND_TIMEOUT_S = 10.0
_TICK_S = 0.1


class ChildError(FadelabError):
    """A process of the run failed; the message is its own."""


class Child:
    """One process that speaks messages (hosts/jsonlines.py); its stderr goes to `log`, if it has any.

    With `copied` it is a copy of this process that runs the module (`copies.py`), and no new interpreter.
    """

    def __init__(
        self, name: str, module: str, *, pass_fds: Sequence[int] = (), log: Path | None = None, copied: bool = False
    ) -> None:
        self.name = name
        self._log = log
        # the checkout, then the user's own path: GNU Radio modules may be in another folder
        python_path = os.pathsep.join(filter(None, (str(root()), os.environ.get("PYTHONPATH"))))
        # closed in `end`
        self._stderr = tempfile.TemporaryFile() if log is None else log.open("w+b")  # noqa: SIM115
        environment = {**os.environ, "PYTHONPATH": python_path}
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            pass_fds=pass_fds,
            env=environment,
            restore_signals=not copied,
            preexec_fn=copies.entry(module, environment, pass_fds) if copied else None,
        )
        # a process that is stuck does not keep its run from its end
        assert self._process.stdin is not None
        os.set_blocking(self._process.stdin.fileno(), False)
        self._decoder = Decoder[FromProcess](FromProcess)
        #: whether its output has ended
        self.ended = False

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def fileno(self) -> int:
        """Return the descriptor of its output."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def send(self, message: ToProcess) -> None:
        """Send one message; do nothing when the process has ended. Raises ChildError when it takes none."""
        assert self._process.stdin is not None
        fd, data = self._process.stdin.fileno(), memoryview(encode(message))
        room = select.poll()
        room.register(fd, select.POLLOUT)
        with contextlib.suppress(BrokenPipeError):
            while data:
                if not room.poll(_SEND_TIMEOUT_S * 1000):
                    raise ChildError(f"{self.name}: takes no messages for {_SEND_TIMEOUT_S:.0f} s: stopped or stuck")
                data = data[os.write(fd, data) :]

    def read(self) -> list[FromProcess]:
        """Return the messages that have come. Raises ChildError when the process failed."""
        data = os.read(self.fileno(), 1 << 16)
        if not data:
            self.ended = True
            try:
                status = self._process.wait(_END_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                raise ChildError(f"{self.name}: does not end") from None
            if status < 0:
                raise ChildError(f"{self.name}: was killed ({signal.Signals(-status).name}){self._last_error_line()}")
            if status:
                raise ChildError(f"{self.name}: ended with status {status}{self._last_error_line()}")
            return []
        try:
            messages = self._decoder.feed(data)
        except ValueError as error:
            raise ChildError(f"{self.name}: {error}") from None
        for message in messages:
            if isinstance(message, Error):
                raise ChildError(f"{self.name}: {message.text}")
        return messages

    def _last_error_line(self) -> str:
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").strip().splitlines()
        return f": {lines[-1]}" if lines else ""

    def end(self) -> None:
        """Close its input, wait, and kill it if need be; idempotent."""
        if self._stderr.closed:
            return
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        # an unread message must not block its end
        self._process.stdout.close()
        try:
            self._process.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._log is not None and os.fstat(self._stderr.fileno()).st_size == 0:
            self._log.unlink(missing_ok=True)
        self._stderr.close()


class ChildGroup(Closing):
    """The children of one run; a context manager that ends them all."""

    def __init__(self) -> None:
        self.children: list[Child] = []
        self._selector = selectors.DefaultSelector()

    def add(self, child: Child) -> Child:
        """Add a child; `receive_until` reads its messages from now on."""
        self.children.append(child)
        self._selector.register(child, selectors.EVENT_READ)
        return child

    def send(self, message: ToProcess) -> None:
        """Send one message to all."""
        for child in self.children:
            child.send(message)

    def receive_until(
        self,
        handle_message: Callable[[Child, FromProcess], None],
        until: Callable[[], bool],
        *,
        timeout_s: float,
        tick: Callable[[], float | None] = lambda: None,
        may_end: bool = False,
    ) -> bool:
        """Pass messages to `handle_message` until `until()`; return False after `timeout_s`.

        `tick` is called about ten times a second, and after the time that it returned (s). Raises ChildError when a
        process fails or, unless it `may_end`, ends.
        """
        deadline = time.monotonic() + timeout_s
        wait_s: float | None = None
        while not until():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            for key, _ in self._selector.select(max(min(left, _TICK_S, _TICK_S if wait_s is None else wait_s), 0)):
                child = key.fileobj
                assert isinstance(child, Child)
                for message in child.read():
                    handle_message(child, message)
                if child.ended:
                    self._selector.unregister(child)
                    if not may_end:
                        raise ChildError(f"{child.name}: ended before its time")
            interrupts.heed()
            wait_s = tick()
        return True

    def close(self) -> None:
        """End them all; idempotent."""
        self._selector.close()
        for child in self.children:
            child.end()
