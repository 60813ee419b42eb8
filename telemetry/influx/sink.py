"""Writes records to InfluxDB, also across outages of the database.

Rules kept
- `write` appends to a queue and returns; a thread does everything else.
- Batches reach the database in the order of their records. While the database is away they go to the spool; while the
  spool is not empty, all batches pass through it.
- Duplicates are harmless: a point replaces one with the same measurement, tags and time. So a batch is sent again
  whenever its arrival is uncertain.
- Points that the database refuses for good go to the spool's `rejected/` and do not block others.
- A record is dropped only when disk and memory are full; dropped records are counted and reported.

Away means: no connection, no answer in time, 401, 403, 404 (no such database), 429, 5xx and other errors that an
administrator can repair during the run.
"""

import gzip
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from telemetry.influx.client import Influx, pack
from telemetry.influx.errors import AwayError, InfluxError, RefusedError, TooLargeError
from telemetry.influx.line import Encoder, halves
from telemetry.influx.spool import Batch, Spool
from telemetry.records import DatabaseRecord

#: longest wait of records for a batch, and most records of a batch
_INTERVAL_S = 0.1
_BATCH_POINTS = 5_000

#: pause between attempts while the database is away
_FIRST_RETRY_S = 0.1
_LAST_RETRY_S = 2.0

#: limit of packed batches in memory, without a disk; about 25 bytes per record
_MEMORY_BYTES = 64 << 20
#: limit of unpacked records, after that; some hundred bytes each
_QUEUE_RECORDS = 200_000

State = Literal["idle", "writing", "away", "closed"]


@dataclass(frozen=True, slots=True)
class SinkStatus:
    """Counts of records by their place. `message` is one line, or empty."""

    #: records in the database
    written: int
    #: in memory or in the spool, those of earlier runs included
    waiting: int
    #: refused by the database, kept in the spool's `rejected/`
    rejected: int
    #: dropped, because database, disk and memory had no room
    dropped: int
    #: before the first attempt; the last attempt succeeded; it failed; closed
    state: State
    message: str


class InfluxSink:
    """A sink (`telemetry/sinks.py`) that writes to a database; every point has `tags`.

    Waiting batches are kept in `spool`, in a folder per database (`Influx.label`), which other sinks and processes may
    use at the same time. `close` takes up to `flush_s` and one time-out of `influx` to send the rest.
    """

    def __init__(self, influx: Influx, tags: Mapping[str, str], spool: Path, *, flush_s: float = 3.0) -> None:
        self._influx = influx
        self._tags = dict(tags)
        self._flush_s = flush_s
        self._spool = Spool(spool / influx.label)
        self._queue: deque[DatabaseRecord] = deque()
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()
        self._state: State = "idle"
        self._trouble = ""
        self._disk_trouble = ""
        self._refusal = ""
        self._written = self._rejected = self._dropped = self._overflowed = 0
        # below: used by the thread only
        self._encoder: Encoder | None = None
        self._memory: deque[Batch] = deque()
        self._memory_bytes = 0
        self._memory_points = 0
        self._batch_points = _BATCH_POINTS
        self._retry_s = _FIRST_RETRY_S
        self._retry_at = 0.0

    def begin(self, epoch_ns: int) -> None:
        """Start to send; `epoch_ns` is added to the time of records."""
        self._encoder = Encoder(self._tags, epoch_ns)
        self._thread = threading.Thread(target=self._run, name="influx-sink", daemon=True)
        self._thread.start()

    def write(self, record: DatabaseRecord) -> None:
        """Take one record."""
        if len(self._queue) < _QUEUE_RECORDS:
            self._queue.append(record)
        else:
            self._overflowed += 1

    def close(self) -> None:
        """Send the rest, or leave it in the spool. Raises InfluxError when records were dropped."""
        if self._thread is not None:
            self._closing.set()
            self._thread.join()
            self._thread = None
        self._dropped += len(self._queue) + self._memory_points
        self._queue.clear()
        self._memory.clear()
        self._memory_points = 0
        self._spool.close()
        self._state = "closed"
        status = self.status()
        if status.dropped:
            raise InfluxError(
                f"{status.dropped} records will never be in InfluxDB: {status.message or 'the run did not begin'}"
            )

    def status(self) -> SinkStatus:
        """Return the status; cheap."""
        left = f"{self._spool.points} records wait in {self._spool.folder} for the next run"
        notes = (
            left if self._state == "closed" and self._spool.points else "",
            self._trouble,
            self._disk_trouble,
            self._spool.trouble,
            self._refusal,
        )
        return SinkStatus(
            written=self._written,
            waiting=len(self._queue) + self._memory_points + self._spool.points,
            rejected=self._rejected,
            dropped=self._dropped + self._overflowed,
            state=self._state,
            message="; ".join(filter(None, notes)),
        )

    def _run(self) -> None:
        try:
            self._work()
        except Exception as error:
            # a bug; the traceback goes to stderr, as from any thread
            self._trouble = f"internal error of the sink: {type(error).__name__}: {error}"
            raise

    def _work(self) -> None:
        self._adopt()
        while not self._closing.wait(0 if self._can_send() else _INTERVAL_S):
            self._encode()
            self._deliver(time.monotonic() + _INTERVAL_S)
            if self._state == "away" or self._spool.points:
                self._spill()
        give_up_at = time.monotonic() + self._flush_s
        self._retry_at = 0.0
        self._encode()
        self._deliver(give_up_at)
        while (self._queue or self._memory or self._spool.points) and time.monotonic() < give_up_at:
            time.sleep(_FIRST_RETRY_S)
            self._encode()
            self._deliver(give_up_at)
        self._spill()

    def _adopt(self) -> None:
        try:
            self._spool.adopt()
        except OSError as error:
            self._disk_trouble = _disk_line(self._spool, error)

    def _can_send(self) -> bool:
        """Whether enough records wait to send before the next round."""
        return bool(self._memory or self._spool.points) and time.monotonic() >= self._retry_at

    def _encode(self) -> None:
        """Move the queue into packed batches, as far as memory allows."""
        assert self._encoder is not None
        left = len(self._queue)
        while left and self._memory_bytes < _MEMORY_BYTES:
            number = min(left, self._batch_points)
            left -= number
            lines, points = self._encoder.lines([self._queue.popleft() for _ in range(number)])
            if points:
                self._remember(Batch(pack(lines), points))

    def _deliver(self, until: float) -> None:
        """Send batches, oldest first, until all are sent, the database is away or the time is `until` (monotonic).

        At least one is tried.
        """
        while time.monotonic() >= self._retry_at:
            spooled = self._spool.first()
            batch = spooled or (self._memory[0] if self._memory else None)
            if batch is None:
                return
            try:
                self._written += self._send(batch)
            except AwayError as error:
                self._state, self._trouble = "away", str(error)
                self._retry_at = time.monotonic() + self._retry_s
                self._retry_s = min(2 * self._retry_s, _LAST_RETRY_S)
                return
            self._state, self._trouble = "writing", ""
            self._retry_s = _FIRST_RETRY_S
            if spooled:
                self._spool.pop()
            else:
                self._forget()
            if time.monotonic() >= until:
                return

    def _send(self, batch: Batch) -> int:
        """Send one batch, divided if necessary; return the number of accepted points."""
        try:
            self._influx.write_packed(batch.body)
        except TooLargeError as error:
            if batch.points == 1:
                return self._reject(batch, error)
            self._batch_points = max(1, min(self._batch_points, batch.points // 2))
            first, second = halves(gzip.decompress(batch.body))
            number = batch.points // 2
            return self._send(Batch(pack(first), number)) + self._send(Batch(pack(second), batch.points - number))
        except RefusedError as error:
            return self._reject(batch, error)
        return batch.points

    def _reject(self, batch: Batch, error: TooLargeError | RefusedError) -> int:
        """Set aside a batch with refused points; return the number of accepted ones."""
        left_out = error.points if isinstance(error, RefusedError) and error.points else batch.points
        try:
            self._spool.reject(batch, str(error))
            self._rejected += left_out
            self._refusal = f"{self._rejected} records refused, kept in {self._spool.folder / 'rejected'}: {error}"
        except OSError as disk:
            self._dropped += left_out
            self._disk_trouble = _disk_line(self._spool, disk)
        return batch.points - left_out

    def _spill(self) -> None:
        """Move batches from memory to disk, as far as space allows."""
        try:
            while self._memory:
                self._spool.append(self._memory[0])
                self._forget()
                self._disk_trouble = ""
        except OSError as error:
            self._disk_trouble = _disk_line(self._spool, error)

    def _remember(self, batch: Batch) -> None:
        self._memory.append(batch)
        self._memory_bytes += len(batch.body)
        self._memory_points += batch.points

    def _forget(self) -> None:
        batch = self._memory.popleft()
        self._memory_bytes -= len(batch.body)
        self._memory_points -= batch.points


def _disk_line(spool: Spool, error: OSError) -> str:
    return f"spool {spool.folder}: {error.strerror or error}"
