"""Events of one run as text, from its records: marks on the charts of programs that show a database."""

from telemetry.records import ControlRecord, DatabaseRecord, TcpRecord

#: limit of remembered flows, in case names never end
_MAX_FLOWS = 10_000


class Events:
    """Finds the events in the records of one run, in their order."""

    def __init__(self) -> None:
        self._timeouts: dict[tuple[str, str], int] = {}

    def text(self, record: DatabaseRecord) -> str:
        """Return the text of the event in the next record, or an empty string."""
        if isinstance(record, TcpRecord):
            count = self._new_timeouts(record)
            return "" if count == 0 else "timeout" if count == 1 else f"{count} timeouts"
        if isinstance(record, ControlRecord):
            value = record.decoded()
            return f"{record.name}: {value if isinstance(value, str) else record.value}"
        return ""

    def _new_timeouts(self, record: TcpRecord) -> int:
        flow = record.host, record.flow
        before = self._timeouts.get(flow, 0)
        if record.timeouts == before:
            return 0
        if len(self._timeouts) >= _MAX_FLOWS:
            self._timeouts.clear()
        self._timeouts[flow] = record.timeouts
        # a smaller count is that of a new connection
        return record.timeouts - before if record.timeouts > before else record.timeouts
