"""Stations of virtual time do what the real-time ones do: the same packets, at the same instants, to the ns.

The real-time station is driven here by a clock that jumps from deadline to deadline, with real octets: frames are
emitted, damaged bit by bit, parsed and repaired by Reed-Solomon.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from random import Random
from typing import Any

import pytest

from channel.hop import Hop
from common.sides import SIDES, Side, other
from hosts.engine.packets import UDP, Datagram
from linklayer.queues.drop_tail import DropTail
from linklayer.schemes import SCHEMES
from tcpip.segment import Flow
from testbed.live import station_loop
from testbed.live.hop_radio import HopRadio
from testbed.live.station_loop import StationLoop
from testbed.model.station_driver import ModelStation, join
from testbed.model.virtual_clock import VirtualClock
from testbed.results.frame_fates import OBJECTS, FrameFates
from testbed.scenario.resolver import resolve
from testbed.scenario.run_plan import Plan
from tests.harness.scenarios import scenario

pytestmark = [pytest.mark.slow, pytest.mark.interpreted]

MS = 1_000_000
SECOND = 1_000_000_000
#: ns, side, packet
Sending = tuple[int, Side, bytes]
Delivery = tuple[int, Side, bytes]
#: what was delivered, and what was counted by side
Outcome = tuple[list[Delivery], dict[Side, dict[str, Any]]]


def packets(seed: int, seconds: float) -> list[Sending]:
    """Bursts of packets of all sizes in both directions, each of them different."""
    rng = Random(seed)
    found: list[Sending] = []
    for side in SIDES:
        at = 0.0
        while (at := at + rng.expovariate(40 / SECOND)) < seconds * SECOND:
            for _ in range(rng.choice((1, 1, 2, 12))):
                nbytes = rng.choice((40, 40, 576, 1450, 1500))
                # IPv4 without options; the rest tells packets apart
                header = bytes((0x45, 0, *nbytes.to_bytes(2, "big"), *rng.randbytes(5), rng.choice((6, 6, UDP))))
                found.append((int(at), side, header + rng.randbytes(nbytes - len(header))))
    return sorted(found)


def make_parts(run: Plan, side: Side, sized: bool) -> tuple[Any, Hop[Any]]:
    """A station's link and hop."""
    station = run.stations[side]
    link = station.link.make(station.rng("link"), 0, sized=sized)
    return link, station.hop.make(station.hop.buffer_bytes[link.flow_control])


class Udp(Datagram):
    """A datagram that remembers its octets."""

    def __init__(self, octets: bytes) -> None:
        super().__init__(Flow(1, 1, 2, 2), len(octets), 0, 0)
        self.octets = octets


class Port:
    """Where packets come from and go to."""

    def __init__(self) -> None:
        self.coming: deque[bytes] = deque()
        self.gone: list[bytes] = []

    def fileno(self) -> int:
        return -1

    def read(self) -> bytes | None:
        return self.coming.popleft() if self.coming else None

    def write(self, packet: bytes) -> bool:
        self.gone.append(packet)
        return True


class Radio(HopRadio):
    """Carries frames to the other station's radio at once."""

    far: "Radio"

    def __init__(self, hop: Hop[bytes], max_frame_bytes: int) -> None:
        super().__init__(hop, max_frame_bytes=max_frame_bytes, late_bound_ns=0)
        self._heard: deque[bytes] = deque()

    def fileno(self) -> int:
        return -1

    def receive(self) -> bytes | None:
        return self._heard.popleft() if self._heard else None

    def next_deadline(self) -> int | None:
        return self.hop.next_deadline()

    def _carry(self, now: int) -> None:
        self.far._heard.extend(self._waiting)
        self._waiting.clear()


def real_time(run: Plan, sendings: list[Sending], until: int) -> Outcome:
    """What two real-time stations deliver, and what they have counted."""
    scheme = run.scheme
    ports, radios, links, stations = {}, {}, {}, {}
    for side in SIDES:
        links[side], hop = make_parts(run, side, sized=False)
        radios[side] = Radio(hop, run.max_frame_bytes)
        ports[side] = Port()
        stations[side] = StationLoop(
            port=ports[side],
            link=links[side],
            scheme=scheme,
            radio=radios[side],
            queues=[DropTail(run.stations[side].ip_queue_bytes) for _ in range(2)],
            classifier=run.classifier,
            report=lambda now: None,
            report_interval_ns=SECOND,
            control=lambda fd: None,
        )
    radios["up"].far, radios["down"].far = radios["down"], radios["up"]
    deliveries: list[Delivery] = []
    waiting = deque(sendings)
    now = 0
    while now <= until:
        while waiting and waiting[0][0] <= now:
            _, side, packet = waiting.popleft()
            ports[side].coming.append(packet)
            stations[side].turn(now)
        # twice: what the second station carries, the first has to hear
        for side in (*SIDES, *SIDES):
            stations[side].turn(now)
            deliveries += [(now, other(side), packet) for packet in ports[side].gone]
            ports[side].gone.clear()
        deadlines = [part.next_deadline() for part in (*radios.values(), *links.values())]
        now = min(at for at in (*deadlines, waiting[0][0] if waiting else None, until + 1) if at is not None)
    counts = {side: _counts(links[side], radios[side].hop, stations[side].bad_frames) for side in SIDES}
    return deliveries, counts


def model_station(clock: VirtualClock, run: Plan, side: Side, deliver: Callable[[Any], object]) -> ModelStation:
    link, hop = make_parts(run, side, sized=True)
    return ModelStation(
        clock,
        link=link,
        scheme=run.scheme,
        hop=hop,
        queues=tuple(DropTail(run.stations[side].ip_queue_bytes) for _ in range(2)),
        classifier=run.classifier,
        max_frame_bytes=run.max_frame_bytes,
        deliver=deliver,
        fates=FrameFates(OBJECTS, run.stations[side].hop.frame_ns),
    )


def virtual_time(run: Plan, sendings: list[Sending], until: int) -> Outcome:
    """What two stations of virtual time deliver, and what they have counted."""
    clock = VirtualClock()
    deliveries: list[Delivery] = []

    def deliver(side: Side, packet: Any) -> None:
        deliveries.append((clock.now, other(side), packet.octets if isinstance(packet, Udp) else packet))

    stations = {side: model_station(clock, run, side, partial(deliver, side)) for side in SIDES}
    for at, side, packet in sendings:
        clock.at(at, stations[side].take, Udp(packet) if packet[9] == UDP else packet)
    join(stations["up"], stations["down"])
    clock.run(until=until)
    counts = {side: _counts(s.link, s.hop, s.bad_frames) for side, s in stations.items()}
    return deliveries, counts


def _counts(link: Any, hop: Hop[Any], bad_frames: int) -> dict[str, Any]:
    hop_counts = {name: getattr(hop, name) for name in ("frames", "bytes", "erased", "damaged", "refused")}
    return {**asdict(link.counters()), **hop_counts, "bad_frames": bad_frames}


ERRORS: dict[str, Any] = {
    "none": {"model": "none"},
    "bernoulli": {"model": "bernoulli", "per": 0.2},
    "exponential": {"model": "exponential", "mean_spacing_bytes": 4000},
    "bursts": {"model": "bursts", "burst_frames": 5, "mean_spacing_bytes": 20_000},
    "uniform": {"model": "uniform", "good_ms": [50, 400], "bad_ms": [20, 150]},
    "gilbert-elliott": {"model": "gilbert-elliott", "good_ms": 300, "bad_ms": 60, "good_per": 0.01, "bad_per": 0.8},
}


#: options of schemes whose timers are too short for capacity that has to be asked for
PATIENT: dict[str, Any] = {name: {name: {"resend_after_ms": 2500}} for name in ("arq", "hybrid")}


def cases() -> Iterator[Any]:
    for scheme in SCHEMES:
        for name, errors in ERRORS.items():
            yield pytest.param(scheme, {"errors": errors}, id=f"{scheme}-{name}")
        for kind in ("rbdc", "vbdc"):
            dama = {"rate_bps": 2_048_000, "assignment": {"kind": kind}, "errors": {"model": "bernoulli", "per": 0.05}}
            yield pytest.param(scheme, dama, id=f"{scheme}-{kind}")
        holds = {"excess_delay": {"probability": 0.02, "hold_ms": 40}}
        yield pytest.param(scheme, holds, id=f"{scheme}-holds")
        yield pytest.param(scheme, {"rate_bps": 128_000, "framing": "aal5"}, id=f"{scheme}-slow")


@pytest.mark.parametrize(("scheme", "channel"), list(cases()))
def test_both_kinds_of_station_do_the_same(
    scheme: str, channel: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    # a turn ends after so many frames, and sends; frames that were held come all at once
    monkeypatch.setattr(station_loop, "BATCH", 10_000)
    # numbers that let no two things happen in the same ns: there either order would be right
    odd = {"delay_ms": 25.000317, "rate_bps": channel.get("rate_bps", 2_000_000) - 17}
    link = {"scheme": scheme, **(PATIENT.get(scheme, {}) if "assignment" in channel else {})}
    run = resolve(scenario(link=link, channel={**channel, "down": odd}, seed=3))
    sendings, until = packets(seed=5, seconds=4), 12 * SECOND
    wanted, wanted_counts = real_time(run, sendings, until)
    got, counts = virtual_time(run, sendings, until)
    # links that pace their packets carry few where capacity has to be asked for
    assert len(wanted) > 15
    for side in SIDES:
        assert [d for d in got if d[1] == side] == [d for d in wanted if d[1] == side]
    assert counts == wanted_counts


def test_a_station_sleeps_while_nothing_happens() -> None:
    run = resolve(scenario(link={"scheme": "none"}))
    clock = VirtualClock()
    station = model_station(clock, run, "up", lambda packet: None)
    join(station, station)
    station.take(bytes(100))  # type: ignore[arg-type]
    clock.run()
    # its end on the air, and its arrival
    assert clock.scheduled == 2
    assert clock.now == 104 * 8 * SECOND // 2_000_000 + 25 * MS
