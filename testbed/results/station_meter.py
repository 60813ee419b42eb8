"""The meter of a station, in real time and in virtual time: counts since its start, and rates between reports."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from channel.hop import Hop
from linklayer.link import LinkCounters, Scheme
from linklayer.queues import Queue
from linklayer.station import Station
from linklayer.station_counts import StationCounts, StationReport
from testbed.results.lost_packets import LostPackets


@dataclass(frozen=True, slots=True)
class DriverCounts:
    """The counts that a station's driver keeps, since its start."""

    #: received frames that do not parse
    bad_frames: int = 0
    #: packets that the TAP refused
    port_refusals: int = 0
    #: frames of the far station that its radio missed or received damaged
    unheard: int = 0


class StationMeter:
    """Counts frames sent (on the station's own direction), received and repaired (on the other).

    `driver` returns the driver's own counts, `lost_packets` has the packets of lost frames where packets repeat.
    """

    def __init__(
        self,
        station: Station,
        hop: Hop[Any],
        queues: Sequence[Queue],
        scheme: Scheme,
        driver: Callable[[], DriverCounts],
        lost_packets: LostPackets,
    ) -> None:
        self._station, self._hop, self._queues = station, hop, queues
        self._scheme, self._driver, self._lost_packets = scheme, driver, lost_packets
        #: counters of the links before this one
        self._before = LinkCounters()
        #: packets lost under schemes that count none: in the modelled medium, and in the air towards this station
        self._unrepaired_taken, self._unrepaired_unheard = 0, 0
        #: all lost frames of both kinds but those whose packets were not lost, at the last count
        self._lost = (0, 0)
        self._epoch = 0
        #: time of the last report, and the octets sent and useful by then
        self._last = (0, 0, 0)

    def begin(self, epoch: int) -> None:
        """Take the run's time 0, from which rates count."""
        self._epoch = epoch
        self._last = (epoch, self._hop.bytes, self._counters().useful_bytes)

    def switch(self, scheme: Scheme) -> None:
        """Go on under another scheme; to be called before the station switches to the new link."""
        # count the losses so far under the old scheme
        self.counts()
        self._scheme = scheme
        self._before = self._counters()

    def counts(self) -> StationCounts:
        """Return the counts so far."""
        counters, hop, driver = self._counters(), self._hop, self._driver()
        lost = hop.erased + hop.damaged - self._lost_packets.spared, driver.unheard
        repairs = self._scheme.repairs
        if repairs != "known":
            self._unrepaired_taken += lost[0] - self._lost[0]
        if repairs == "none":
            # of a packet in several frames the far radio cannot tell whether it has missed all
            self._unrepaired_unheard += lost[1] - self._lost[1]
        self._lost = lost
        known = {field.name: getattr(counters, field.name) for field in fields(LinkCounters)}
        return StationCounts(
            **known,
            frames=hop.frames,
            frame_bytes=hop.bytes,
            queue_bytes=sum(queue.nbytes for queue in self._queues),
            congestion_losses=self._station.congestion_losses,
            corruption_losses=hop.erased + hop.damaged,
            unheard=driver.unheard,
            unrepaired_taken=self._unrepaired_taken,
            unrepaired_unheard=self._unrepaired_unheard,
            bad_frames=driver.bad_frames + counters.refused,
            port_refusals=driver.port_refusals,
            # a blind link delivers a packet once
            repeats=0 if repairs == "blind" else self._lost_packets.repeats,
        )

    def report(self, now: int) -> StationReport | None:
        """Return the report at `now`; None without time since the last one."""
        last_at, last_sent, last_useful = self._last
        if now <= last_at:
            return None
        sent, useful = self._hop.bytes, self._counters().useful_bytes
        self._last = (now, sent, useful)
        return StationReport(
            time_ns=now - self._epoch,
            scheme=self._scheme.name,
            established=self._station.link.established,
            throughput_bps=(sent - last_sent) * 8e9 / (now - last_at),
            goodput_bps=(useful - last_useful) * 8e9 / (now - last_at),
            counts=self.counts(),
            beliefs=self._station.link.beliefs(),
        )

    def _counters(self) -> LinkCounters:
        return self._before + self._station.link.counters()
