"""A process's side of its messages (`messages.py`): lines on stdin and stdout."""

import os
import signal
from collections.abc import Callable
from typing import TypeVar

from hosts.codec import kind_of
from hosts.messages import Config, Decoder, Error, FromProcess, ToProcess, encode

_STDIN, _STDOUT, _STDERR = 0, 1, 2
C = TypeVar("C", bound=Config)


class MessageReader:
    """Reads the messages on stdin."""

    def __init__(self) -> None:
        self._decoder = Decoder[ToProcess](ToProcess)

    def fileno(self) -> int:
        """Return the descriptor of stdin."""
        return _STDIN

    def read(self) -> list[ToProcess] | None:
        """Wait for input; return the complete messages, or None at the end of the input.

        Raises ValueError in one line when a line is no message to a process.
        """
        data = os.read(_STDIN, 65536)
        return self._decoder.feed(data) if data else None

    def first(self) -> tuple[ToProcess, list[ToProcess]] | None:
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


def write_message(message: FromProcess) -> None:
    """Write one message to stdout."""
    data = encode(message)
    while data:
        data = data[os.write(_Output.fd, data) :]


def unexpected(message: ToProcess) -> ValueError:
    """Return the error for a message that is not for this process, or comes at the wrong time."""
    return ValueError(f"{kind_of(type(message))} is not for this process now")


def run_child(kind: type[C], serve: Callable[[MessageReader, C, list[ToProcess]], None]) -> int:
    """Run a child process: call `serve` with the reader, the configuration, and the messages that came with it.

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
            config, waiting = first
            if not isinstance(config, kind):
                raise unexpected(config)
            serve(reader, config, waiting)
    except BrokenPipeError:
        return 0
    except (RuntimeError, ValueError, OSError) as error:
        write_message(Error(text=" ".join(str(error).split())))
        return 2
    return 0
