"""One station on its own: for two machines with a radio each, or for looking into one end of a link.

The station is the same process as in a run (`station.py`); this is its keeper, which says what it does.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from testbed.children import Child, ChildError, Family, Message
from testbed.scenario import Scenario, Side
from testbed.station import station_config

_READY_S = 30.0
_FINAL_S = 10.0

#: called with what the station says at every interval, by kind: link, phy
Report = Callable[[str, Mapping[str, Any]], None]


def run_station(
    scenario: Scenario,
    side: Side,
    device: str,
    *,
    tap: str,
    folder: Path,
    seconds: float | None,
    up: Callable[[], None],
    report: Report,
) -> Mapping[str, Any]:
    """Be the station that transmits on `side` until `seconds` have passed or Ctrl-C; return its last word.

    `up()` is called once the radio runs and the TAP is there. Raises ChildError, in one line.
    """
    final: dict[str, Any] = {}
    started = False

    def hear(child: Child, message: Message) -> None:
        nonlocal started
        for kind, body in message.items():
            if kind == "started":
                started = True
            elif kind == "final":
                final.update(body)
            elif kind in ("link", "phy", "ready"):
                report(kind, body if isinstance(body, dict) else {})

    folder.mkdir(parents=True, exist_ok=True)
    with Family() as family:
        child = family.add(Child("station", "testbed.station"))
        child.tell(station_config(scenario, side, wiring={"device": device}, folder=folder, tap=tap))
        if not family.listen(hear, lambda: started, timeout_s=_READY_S):
            raise ChildError(f"station: the radio did not start within {_READY_S:.0f} s")
        up()
        child.tell({"go": time.monotonic_ns()})
        with suppress(KeyboardInterrupt):
            family.listen(hear, lambda: False, timeout_s=float("inf") if seconds is None else seconds)
        child.tell({"stop": True})
        family.listen(hear, lambda: child.ended, timeout_s=_FINAL_S, may_end=True)
    return final


def folder_name(role: str) -> str:
    """The name of the folder of a station that starts now."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-station-{role}"
