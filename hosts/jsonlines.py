"""Speaking JSON, a line a message, over stdin and stdout: how a run and its processes talk."""

import json
import os
from collections.abc import Mapping
from typing import Any

_STDIN, _STDOUT = 0, 1


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


def say(message: Mapping[str, Any]) -> None:
    """Write one line to stdout."""
    data = json.dumps(message, separators=(",", ":")).encode() + b"\n"
    while data:
        data = data[os.write(_STDOUT, data) :]
