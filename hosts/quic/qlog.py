"""aioquic's own events as qlog, in JSON text sequences, with the times of the run.

Read first: draft-ietf-quic-qlog-main-schema-03 (qlog 0.3), section 3.1 and 6.2 (JSON-SEQ); RFC 7464 (JSON text
sequences: each record begins with RS and ends with LF).

Rules kept: the events and their fields are aioquic's. Its logger reads the wall clock for each; here the time is the
engine's, in ms since the run's time 0, so that a run in virtual time repeats to the byte. Events are written as they
come.
"""

import json
from typing import Any, Final, TextIO

from aioquic.quic.logger import QuicLogger, QuicLoggerTrace
from typing_extensions import override

from hosts.engine.context import Context

_SEPARATOR: Final = "\x1e"


class Qlog(QuicLogger):
    """Writes the traces of one end of a flow to a file, a connection at a time."""

    def __init__(self, context: Context, flow: str, file: TextIO) -> None:
        super().__init__()
        self._context, self._flow, self._file = context, flow, file

    @override
    def start_trace(self, is_client: bool, odcid: bytes) -> QuicLoggerTrace:
        trace = _Trace(self, is_client=is_client, odcid=odcid)
        about = trace.to_dict()
        del about["events"]
        name = f"{self._context.host}, flow {self._flow}"
        common = {"time_format": "relative", "reference_time": 0.0, **about["common_fields"]}
        vantage_point = {"name": name, **about["vantage_point"]}
        version = self.to_dict()["qlog_version"]
        whole = {"common_fields": common, "vantage_point": vantage_point}
        self.write({"qlog_format": "JSON-SEQ", "qlog_version": version, "title": f"flow {self._flow}", "trace": whole})
        return trace

    @override
    def end_trace(self, trace: QuicLoggerTrace) -> None:
        """The file has the whole trace already."""

    def event(self, name: str, data: dict[str, Any]) -> None:
        """Write an event of now."""
        self.write({"time": self._context.time_ns / 1e6, "name": name, "data": data})

    def write(self, record: dict[str, Any]) -> None:
        """Write a record of the sequence."""
        self._file.write(f"{_SEPARATOR}{json.dumps(record)}\n")


class _Trace(QuicLoggerTrace):
    def __init__(self, log: Qlog, *, is_client: bool, odcid: bytes) -> None:
        super().__init__(is_client=is_client, odcid=odcid)
        self._log = log

    @override
    def log_event(self, *, category: str, event: str, data: dict[str, Any]) -> None:
        self._log.event(f"{category}:{event}", data)
