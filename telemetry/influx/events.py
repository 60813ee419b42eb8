"""What happened, in words, from the records of one run: what a program that shows a database marks on its charts."""

import json
from typing import Any

from telemetry.records import ControlRecord, DatabaseRecord, TcpRecord

#: more flows than anyone looks at: names beyond come from something that does not end
_MAX_FLOWS = 10_000


class Events:
    """Takes the records of one run in their order."""

    def __init__(self) -> None:
        self._timeouts: dict[tuple[str, str], int] = {}

    def text(self, record: DatabaseRecord) -> str:
        """Return what the next record tells of; nothing if it is one of many."""
        if isinstance(record, TcpRecord):
            count = self._new_timeouts(record)
            return "" if count == 0 else "timeout" if count == 1 else f"{count} timeouts"
        if isinstance(record, ControlRecord):
            return f"{record.name}: {_plain(record.value)}"
        return ""

    def _new_timeouts(self, record: TcpRecord) -> int:
        flow = record.host, record.flow
        before = self._timeouts.get(flow, 0)
        if record.timeouts == before:
            return 0
        if len(self._timeouts) >= _MAX_FLOWS:
            self._timeouts.clear()
        self._timeouts[flow] = record.timeouts
        # fewer than before are those of a new connection
        return record.timeouts - before if record.timeouts > before else record.timeouts


def _plain(value: str) -> Any:
    """Return what a control's JSON says to a person: no quotes around a string."""
    try:
        found = json.loads(value)
    except ValueError:
        return value
    return found if isinstance(found, str) else value
