"""Messages between a run and its processes: one JSON object per line, over stdin and stdout."""

import json
import os
import signal
from collections.abc import Callable, Mapping
from typing import Any

_STDIN, _STDOUT, _STDERR = 0, 1, 2


class MessageReader:
    """Reads the messages on stdin."""

    def __init__(self) -> None:
        self._buffer = b""

    def fileno(self) -> int:
        """Return the descriptor of stdin."""
        return _STDIN

    def read(self) -> list[dict[str, Any]] | None:
        """Wait for input; return the complete messages, or None at the end of the input.

        Raises ValueError when a line is no JSON object.
        """
        data = os.read(_STDIN, 65536)
        if not data:
            return None
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        messages = [json.loads(line) for line in lines if line.strip()]
        if not all(isinstance(message, dict) for message in messages):
            raise ValueError("every line on stdin must be a JSON object")
        return messages

    def first(self) -> tuple[dict[str, Any], list[dict[str, Any]]] | None:
        """Wait for the first message; return it and the messages that came with it, or None at the end of the input."""
        while (messages := self.read()) is not None:
            if messages:
                return messages[0], messages[1:]
        return None


class _Output:
    """The descriptor that messages go to: stdout as it was at the start."""

    fd = _STDOUT

    @classmethod
    def claim(cls) -> None:
        """Reserve stdout for messages: the prints of libraries go to stderr from now on."""
        cls.fd = os.dup(_STDOUT)
        os.dup2(_STDERR, _STDOUT)


def write_message(message: Mapping[str, Any]) -> None:
    """Write one message to stdout."""
    data = json.dumps(message, separators=(",", ":")).encode() + b"\n"
    while data:
        data = data[os.write(_Output.fd, data) :]


def run_child(serve: Callable[[MessageReader, dict[str, Any], list[dict[str, Any]]], None]) -> int:
    """Run a child process: call `serve` with the reader, the first message, and the messages that came with it.

    Returns the exit status: 0 when stopped or when the parent has closed the pipe, 2 after an error, which has been
    reported in one line. The process ignores SIGINT and SIGTERM, which a whole process group may get: the parent
    handles them, and closes the child's stdin.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    _Output.claim()
    reader = MessageReader()
    try:
        first = reader.first()
        if first is not None:
            serve(reader, *first)
    except BrokenPipeError:
        return 0
    except (RuntimeError, ValueError, KeyError, TypeError, OSError) as error:
        text = f"the configuration lacks {error}" if isinstance(error, KeyError) else str(error)
        write_message({"error": " ".join(text.split())})
        return 2
    return 0
