"""The meter of a station: rates between reports, and losses that count by the scheme of their time."""

from types import SimpleNamespace
from typing import Any

from linklayer.link import LinkCounters
from linklayer.schemes import SCHEMES
from linklayer.station_counts import StationReport
from testbed.results.lost_packets import LostPackets
from testbed.results.station_meter import DriverCounts, StationMeter

SECOND = 1_000_000_000


class Bench:
    """A meter over parts whose figures a test sets."""

    def __init__(self, scheme: str) -> None:
        self.counters = LinkCounters()
        link = SimpleNamespace(established=True, counters=lambda: self.counters, beliefs=lambda: None)
        station: Any = SimpleNamespace(link=link, congestion_losses=7)
        hop: Any = SimpleNamespace(bytes=0, frames=0, erased=0, damaged=0)
        self.station, self.hop = station, hop
        self.driver = DriverCounts()
        self.lost_packets = LostPackets()
        queues: Any = [SimpleNamespace(nbytes=300), SimpleNamespace(nbytes=40)]
        self.meter = StationMeter(station, hop, queues, SCHEMES[scheme], lambda: self.driver, self.lost_packets)

    def report(self, now: int) -> StationReport:
        report = self.meter.report(now)
        assert report is not None
        return report


def test_rates_are_those_since_the_last_report() -> None:
    bench = Bench("slacp")
    bench.hop.bytes, bench.counters.useful_bytes = 1000, 500
    bench.meter.begin(10 * SECOND)
    bench.hop.bytes, bench.counters.useful_bytes = 3000, 1000
    first = bench.report(12 * SECOND)
    assert (first.time_ns, first.throughput_bps, first.goodput_bps) == (2 * SECOND, 8000, 2000)
    assert bench.meter.report(12 * SECOND) is None
    second = bench.report(13 * SECOND)
    assert (second.time_ns, second.throughput_bps, second.goodput_bps) == (3 * SECOND, 0, 0)


def test_counts_join_link_hop_queues_and_driver() -> None:
    bench = Bench("none")
    bench.counters.refused, bench.hop.erased, bench.hop.damaged = 2, 3, 4
    bench.driver = DriverCounts(bad_frames=5, port_refusals=6, unheard=8)
    counts = bench.meter.counts()
    assert (counts.queue_bytes, counts.congestion_losses, counts.corruption_losses) == (340, 7, 7)
    assert (counts.bad_frames, counts.port_refusals, counts.unheard) == (7, 6, 8)
    assert (counts.unrepaired_taken, counts.unrepaired_unheard) == (7, 8)


def test_a_spared_packet_is_no_loss() -> None:
    bench = Bench("none")
    bench.hop.erased = 2
    for lost in (True, False, True, False):
        bench.lost_packets.handle_fate("packet", lost)
    counts = bench.meter.counts()
    assert (counts.corruption_losses, counts.unrepaired_taken, counts.repeats) == (2, 0, 1)


def test_losses_count_by_the_scheme_of_their_time() -> None:
    bench = Bench("none")
    bench.hop.erased, bench.counters.delivered = 3, 10
    bench.meter.switch(SCHEMES["slacp"])
    bench.station.link.counters = LinkCounters
    bench.hop.erased = 9
    assert bench.meter.counts().unrepaired_taken == 3
    bench.meter.switch(SCHEMES["none"])
    bench.hop.erased = 10
    counts = bench.meter.counts()
    assert counts.unrepaired_taken == 4
    # of the first link
    assert counts.delivered == 10
