"""Speaking JSON, a line a message, over stdin and stdout: how a run and its processes talk."""

import json
import os
import signal
from collections.abc import Callable, Mapping
from typing import Any

_STDIN, _STDOUT, _STDERR = 0, 1, 2


class Orders:
    """The lines on stdin."""

    def __init__(self) -> None:
        self._buffer = b""

    def fileno(self) -> int:
        """Standard input's descriptor."""
        return _STDIN

    def read(self) -> list[dict[str, Any]] | None:
        """Whole lines that have come, after waiting for some input; None at its end.

        Raises ValueError when a line is no JSON object.
        """
        data = os.read(_STDIN, 65536)
        if not data:
            return None
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        orders = [json.loads(line) for line in lines if line.strip()]
        if not all(isinstance(order, dict) for order in orders):
            raise ValueError("every line on stdin must be a JSON object")
        return orders

    def first(self) -> tuple[dict[str, Any], list[dict[str, Any]]] | None:
        """The first message, once it has come whole, and those that came with it; None when there is none."""
        while (messages := self.read()) is not None:
            if messages:
                return messages[0], messages[1:]
        return None


class _Lines:
    """Where our lines go: stdout as it was at the start."""

    fd = _STDOUT

    @classmethod
    def claim(cls) -> None:
        """Keep stdout for our lines alone: what libraries print there goes to stderr from now on."""
        cls.fd = os.dup(_STDOUT)
        os.dup2(_STDERR, _STDOUT)


def say(message: Mapping[str, Any]) -> None:
    """Write one line to stdout."""
    data = json.dumps(message, separators=(",", ":")).encode() + b"\n"
    while data:
        data = data[os.write(_Lines.fd, data) :]


def run_child(serve: Callable[[Orders, dict[str, Any], list[dict[str, Any]]], None]) -> int:
    """Be a process of a run: `serve` it with its orders, the first message and those that came with it.

    Returns the exit status: 0 when stopped or when nobody listens any more, 2 after an error, which has been said in
    one line. SIGINT and SIGTERM are the parent's business, also when a whole group gets them: the end of its run
    reaches its children through stdin.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    _Lines.claim()
    orders = Orders()
    try:
        first = orders.first()
        if first is not None:
            serve(orders, *first)
    except BrokenPipeError:
        return 0
    except (RuntimeError, ValueError, KeyError, TypeError, OSError) as error:
        text = f"the configuration lacks {error}" if isinstance(error, KeyError) else str(error)
        say({"error": " ".join(text.split())})
        return 2
    return 0
