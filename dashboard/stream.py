"""The live stream of one page: server-sent events, about ten a second at most.

Read first: HTML standard, section 9.2 (server-sent events).

`frame`  new data of the requested runs; its id is the position, at which a browser continues after a reconnect
`runs`   the hub's runs, at the start and when one begins or ends
`ping`   sent every second without other events: a stream that is silent for longer is broken

A page that does not read blocks its own stream only: each frame is made when the previous one has been sent, and omits
data that the hub has dropped meanwhile. A stream that cannot be delivered ends with its connection.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dashboard.hub import Hub, Reader
from dashboard.run_folders import NAME
from dashboard.shapes import to_json

FRAME_S = 0.1
PING_S = 1.0
#: history that a page gets at first
HISTORY_S = 120.0

_SEEN = re.compile(rf"(?P<name>{NAME.pattern})=(?P<batch>[0-9]{{1,15}})")


def events(
    hub: Hub,
    names: Sequence[str],
    *,
    history_s: float = HISTORY_S,
    views: bool = True,
    comments: bool = False,
    last_id: str = "",
    over: Callable[[], bool] = lambda: False,
) -> Iterator[bytes]:
    """Yield events until `over`. `last_id` is the id of the last event that the page received."""
    known: list[dict[str, Any]] | None = None
    version = -1
    said_at = time.monotonic()
    with Reader(hub, names, history_s=history_s, views=views, comments=comments, seen=_seen(hub, last_id)) as reader:
        # time (ms) after which browsers reconnect
        yield b"retry: 1000\n\n"
        while not over():
            began = time.monotonic()
            version = hub.wait(version, PING_S)
            runs = hub.runs()
            if _outlines(runs) != known:
                known = _outlines(runs)
                yield _event("runs", {"runs": runs})
            frame = reader.frame()
            if frame is not None:
                yield _event("frame", frame, _id(hub, reader))
                said_at = time.monotonic()
            elif time.monotonic() >= said_at + PING_S:
                yield _event("ping", {"now_ns": time.time_ns()})
                said_at = time.monotonic()
            time.sleep(max(began + FRAME_S - time.monotonic(), 0))


def _event(name: str, data: dict[str, Any], event_id: str = "") -> bytes:
    lines = [f"event: {name}", f"data: {to_json(data)}"]
    if event_id:
        lines.insert(0, f"id: {event_id}")
    return ("\n".join(lines) + "\n\n").encode()


def _outlines(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The state of the runs that an event reports."""
    return [{key: run[key] for key in ("name", "live", "ended")} for run in runs]


def _id(hub: Hub, reader: Reader) -> str:
    return "/".join([hub.nonce, *(f"{name}={batch}" for name, batch in reader.seen.items())])


def _seen(hub: Hub, last_id: str) -> dict[str, int]:
    """Parse an event's id; an id of another server or an invalid one counts as none."""
    nonce, *runs = last_id.split("/")
    if nonce != hub.nonce:
        return {}
    found = (_SEEN.fullmatch(run) for run in runs)
    return {match["name"]: int(match["batch"]) for match in found if match}
