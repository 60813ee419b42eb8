"""Statistics of a station's receiver: counts of the other station's frames, the channel trace, and the PHY's figures.

Rules: a gap in the sequence numbers shows missed frames, so those at the end of a run may go unnoticed; in the trace
they stand between their neighbours. Missed frames on both sides of a gap in the samples have an unknown fate and are
not counted: the host was late, not the channel bad. Times are those of the sample stream, lost samples included. The
frame that was delivered soonest after its end relates the stream to the wall clock.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean

from channel.replay import Outcome
from flowgraphs.gaps import Lost
from flowgraphs.phy import Received, SequenceGaps
from telemetry.records import PhyRecord
from testbed.results.frame_trace import FrameTrace


class ReceiverStats:
    """Takes every frame received on `link`; `trace` gets a row for each received and each missed frame.

    `clock` is CLOCK_MONOTONIC in ns.
    """

    def __init__(
        self,
        link: str,
        rate_sps: float,
        trace: FrameTrace | None,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._link = link
        self._ns_per_sample = 1e9 / rate_sps
        self._trace = trace
        self._clock = clock
        self._gaps = SequenceGaps()
        #: when the stream's first sample was received
        self._stream_at: int | None = None
        #: end and size of the previous frame
        self._last: tuple[int, int] | None = None
        #: gaps in the samples before the end of the previous frame
        self._device_gaps = 0
        #: frames received since the last record
        self._fresh: list[Received] = []
        self._fresh_missed = 0
        #: frames with a good header and a damaged payload, and missed frames
        self.corrupted = 0
        self.missed = 0

    def handle_frame(self, received: Received, lost: Lost) -> int:
        """Take a frame as it comes from the radio; return the number of frames missed on the air right before it.

        `lost`: gaps in the samples before it.
        """
        missed = self._gaps.handle(received.sequence)
        fate = Outcome.MISSED if lost.gaps == self._device_gaps else Outcome.UNKNOWN
        self._device_gaps = lost.gaps
        self._fresh.append(received)
        if fate is Outcome.MISSED:
            self._fresh_missed += missed
            self.missed += missed
        self.corrupted += not received.crc_ok
        if self._trace is not None:
            self._write(self._trace, received, received.sample + lost.samples, [fate] * missed)
        return missed if fate is Outcome.MISSED else 0

    def begin(self, epoch: int) -> None:
        """Take the run's time 0, from which the trace counts."""
        if self._trace is not None:
            self._trace.begin(epoch)

    def take_record(self, time_ns: int) -> PhyRecord:
        """Return the figures since the last record."""
        fresh, self._fresh = self._fresh, []
        missed, self._fresh_missed = self._fresh_missed, 0
        sent = len(fresh) + missed
        return PhyRecord(
            time_ns=time_ns,
            link=self._link,
            snr_db=_mean(received.snr_db for received in fresh),
            evm_db=_mean(received.evm_db for received in fresh),
            cfo_hz=_mean(received.cfo_hz for received in fresh),
            mode=fresh[-1].mode if fresh else None,
            rssi_dbfs=_mean(received.rssi_db for received in fresh),
            per=(missed + sum(not received.crc_ok for received in fresh)) / sent if sent else None,
        )

    def _write(self, trace: FrameTrace, received: Received, sample: int, between: Sequence[Outcome]) -> None:
        stream_at = self._clock() - round((sample + received.nsamples) * self._ns_per_sample)
        if self._stream_at is None or stream_at < self._stream_at:
            self._stream_at = stream_at
        started_at = self._stream_at + round(sample * self._ns_per_sample)
        if self._last is not None:
            last_at, nbytes = self._last
            # the stream's place on the clock may have moved a little
            started_at = max(started_at, last_at)
            for number, fate in enumerate(between, 1):
                trace.write(last_at + (started_at - last_at) * number // (len(between) + 1), nbytes, fate)
        outcome = Outcome.OK if received.crc_ok else Outcome.PAYLOAD
        trace.write(started_at, len(received.payload), outcome, received.snr_db, received.cfo_hz)
        self._last = started_at, len(received.payload)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
