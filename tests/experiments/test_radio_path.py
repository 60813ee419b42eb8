"""The COHERENCE paper's network: what crosses it in which time, and what is lost where."""

from typing import Any

import pytest

from channel.errors import ErrorModel
from channel.errors.bernoulli import Bernoulli
from channel.errors.none import NoErrors
from common.sides import Side
from common.units import MS, SECOND
from experiments.coherence import parameters, radio_path_runs
from experiments.coherence.radio_path import DATA_SIDES, Position, RadioPath, RadioPathConfig
from experiments.coherence.radio_path_runs import PathCase, Scheme
from hosts.engine.own_tcp import OwnSender
from hosts.engine.probe import FlowCounter
from hosts.tcp.config import TcpConfig
from linklayer.queues.drop_tail import DropTail
from testbed.model.radio_link import RadioLinkConfig
from testbed.model.transfers import receive, send
from testbed.model.virtual_clock import VirtualClock
from testbed.results.validity import CorruptError
from testbed.scenario.run_plan import make_rng

TCP = TcpConfig().but(recovery="reno", mss=960, timestamps=False, delayed_ack_ns=0, receive_buffer=1 << 20)
by_position = pytest.mark.parametrize("position", list(DATA_SIDES))


class Bench:
    """The network with a transfer from s1 to d1."""

    def __init__(self, position: Position, *, per: float = 0, limit: int = 1000, **radio: Any) -> None:
        self.clock = VirtualClock()
        link = RadioLinkConfig(mtu_bytes=1000, **radio)
        self.path = RadioPath(
            self.clock,
            RadioPathConfig(position=position, radio=link),
            seed=1,
            queue=DropTail(limit_packets=limit),
            radio_queue=DropTail(limit_packets=limit),
            make_errors=lambda side: self._errors(side, per),
        )
        self.counter: FlowCounter = receive(self.path.sink, 5000, TCP)
        self.sender: OwnSender = send(self.path.source, self.path.sink.address, 5000, TCP)

    @staticmethod
    def _errors(side: Side, per: float) -> ErrorModel:
        return Bernoulli(per, make_rng(1, "air", side)) if per else NoErrors()


@by_position
def test_the_first_segment_takes_the_time_of_its_way(position: Position) -> None:
    bench = Bench(position)
    # 22 ms each way, 23 where a wire of 1 ms is behind the wireless link; an octet takes 8/10 us on each wire of
    # 10 Mbit/s, 16/3 us on the bottleneck and, with the CRC's four octets, on the air
    wires = 2 if position == "middle" else 1
    way = (22 + wires - 1) * MS

    def crossing(octets: int) -> int:
        return way + round(octets * 800 * wires + octets * 16_000 / 3 + (octets + 4) * 16_000 / 3)

    # SYN and SYN-ACK carry 8 octets of options (MSS, window scale, padded); data is the first ACK
    arrival = 2 * crossing(48) + crossing(1000)
    bench.clock.run(arrival - 50)
    assert bench.counter.nbytes == 0
    bench.clock.run(arrival + 50)
    assert bench.counter.nbytes == 960


@by_position
def test_cross_traffic_shares_the_bottleneck_and_not_the_air(position: Position) -> None:
    bench = Bench(position)
    bench.path.cross(rate_bps=500_000, on_ms=100, off_ms=100, packet_bytes=1000, end_at=20 * SECOND)
    bench.clock.run(20 * SECOND)
    # half of 500 kbit/s: 31 packets/s
    assert bench.path.cross_packets == pytest.approx(20 * 31.25, rel=0.25)
    assert bench.path.bottleneck.nbytes * 8 > 0.8 * 20 * 1.5e6


@by_position
def test_link_arq_repairs_the_air_and_queue_drops_are_true_congestion(position: Position) -> None:
    bench = Bench(position, per=0.05, limit=5, scheme="arq", filters=("dda",))
    bench.path.cross(rate_bps=500_000, on_ms=100, off_ms=100, packet_bytes=1000, end_at=20 * SECOND)
    bench.clock.run(20 * SECOND)
    counts = bench.path.radio.counts(DATA_SIDES[position])
    assert counts.retransmissions > 30
    drops = bench.path.drops
    assert bench.path.congestion_losses > 0
    assert drops.segments + drops.others == bench.path.bottleneck.congestion_drops
    truth = bench.path.guess_score.confusion()["dda"]
    assert truth["congestion"]["late"] > 0
    assert truth["late"]["late"] > 30


def test_a_run_fails_when_other_data_arrive_than_were_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Octets that nobody wrote, and octets that are acknowledged and never arrive. Seed 1, 5 % of the frames lost."""
    case = PathCase(position="last", per=0.05, scheme=Scheme("arq", ("dda",)))
    settings = parameters.settings({"duration_s": 5.0})
    assert radio_path_runs.run(case, settings, 1).goodput_packets > 100
    with monkeypatch.context() as patched:
        patched.setattr(radio_path_runs, "content_name", lambda port: "of another stream")
        with pytest.raises(CorruptError, match="what arrived is not what was sent"):
            radio_path_runs.run(case, settings, 1)

    def lose(*given: Any, **named: Any) -> FlowCounter:
        receive(*given, **named)
        return FlowCounter("d1", "lost")

    with monkeypatch.context() as patched:
        patched.setattr(radio_path_runs, "receive", lose)
        with pytest.raises(CorruptError, match="what arrived is not what was sent"):
            radio_path_runs.run(case, settings, 1)
