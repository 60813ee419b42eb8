"""Worlds with faults, in virtual time, drawn by Hypothesis: a scenario, changes, and stations that die or stop.

A world heals at a time: from then on 2 % of the frames are lost, no more, and nothing else happens. `live_through` runs
one and raises `RuleBrokenError` where a rule does not hold:

- what arrives is what was sent, in every transfer; from the world's healing on, while a connection is there that
  has data to send, the silence between two deliveries is shorter than `_Lived._patience_ns`;
- the link delivers no packet twice, and none that was not given to it, unless a packet filter, a split connection, a
  change of schemes or a station's death may;
- at no look is a window, a flight, a queue or a buffer outside its bounds, nor a timer in the past;
- when all is over, connections are closed, queues empty, and what the link still holds is bounded.

Left out: what needs octets (`tests/harness/attack/` has hostile ones), and the processes of live tiers.
"""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from hypothesis import strategies as st
from hypothesis.control import reject
from typing_extensions import override

from channel.capacity import CAPACITY_MODELS
from channel.errors import ERROR_MODELS
from common.sequence import MASK, precedes
from common.sides import HOSTS, SIDES, Side
from common.units import MS
from hosts.engine.clock import OBSERVER
from hosts.tcp.connection import Connection
from hosts.tcp.profiles import USER_PROFILES
from hosts.tcp.states import State
from linklayer.filters import FILTERS
from linklayer.queues import QUEUES
from linklayer.schemes import SCHEMES
from tcpip.segment import Flow, IpPacket, Segment
from testbed.errors import FadelabError
from testbed.model.link_network import LinkNetwork
from testbed.model.model_run import Simulation
from testbed.model.traffic import Traffic
from testbed.model.watch import Watch
from testbed.scenario.file import validate
from testbed.scenario.resolver import resolve
from testbed.scenario.run_plan import Plan
from testbed.scenario.schema import Scenario
from testbed.scenario.settings import ScenarioError
from tests.harness.checked import RuleBrokenError, footprint

#: between two looks at everything, before and after the world has healed
_LOOK_NS: Final = 20 * MS
_SELDOM_NS: Final = 1000 * MS
#: share of frames lost in a world that has healed
HEALED_PER: Final = 0.02
#: octets that a link may hold when all is over: a window of the largest packets, twice
_MOST_HELD: Final = 2 * 4096 * 9000


@dataclass(frozen=True)
class Fault:
    """A station dies and another takes its place, or stops for `for_s`; `side` is the one it transmits on."""

    at_s: float
    kind: Literal["restart", "stall"]
    side: Side
    for_s: float = 0.0


@dataclass(frozen=True)
class World:
    """A scenario of tier `model`, faults, and the time from which on all is well."""

    scenario: dict[str, Any]
    faults: tuple[Fault, ...]
    heals_at_s: float

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Show a failing world as JSON, for Hypothesis: its scenario can be read as a file."""
        printer.text(json.dumps({"scenario": self.scenario, "faults": [vars(each) for each in self.faults]}))


# -- drawing -------------------------------------------------------------------------------------------------

_RATES: Final = (64_000, 500_000, 2_000_000, 20_000_000)
#: models that need a file, or that are another model with given options
_FILES: Final = ("trace", "mahimahi")


def _errors() -> st.SearchStrategy[dict[str, Any]]:
    ms = st.integers(1, 2000)
    own: dict[str, st.SearchStrategy[dict[str, Any]]] = {
        "bernoulli": st.fixed_dictionaries({"per": st.sampled_from((0.01, 0.1, 0.3, 0.5))}),
        "bursts": st.fixed_dictionaries(
            {"burst_frames": st.integers(1, 20), "mean_spacing_bytes": st.integers(5_000, 100_000)}
        ),
        "exponential": st.fixed_dictionaries({"mean_spacing_bytes": st.integers(2_000, 200_000)}),
        "gilbert-elliott": st.fixed_dictionaries({"good_ms": ms, "bad_ms": ms, "bad_per": st.sampled_from((0.5, 1.0))}),
        "uniform": st.fixed_dictionaries({"good_ms": st.just([10, 2000]), "bad_ms": st.just([1, 500])}),
    }
    names = [name for name in ERROR_MODELS if name not in _FILES]
    return st.one_of(
        *(st.builds(_named, st.just(name), own.get(name, st.just({**ERROR_MODELS[name].example}))) for name in names)
    )


def _named(model: str, options: dict[str, Any]) -> dict[str, Any]:
    return {"model": model, **options}


def _direction() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "rate_bps": st.sampled_from(_RATES),
            "delay_ms": st.sampled_from((0, 1, 25, 250)),
            "errors": _errors(),
            "assignment": st.sampled_from([{"kind": name} for name in CAPACITY_MODELS if name not in _FILES]),
        }
    )


def _lossy(per: float, *sides: Side) -> dict[str, Any]:
    return {f"channel.{side}.errors": {"model": "bernoulli", "per": per} for side in sides}


def _change(splits: bool) -> st.SearchStrategy[dict[str, Any]]:
    """Settings that change: an outage (`per` 1) of one direction or both, other errors, a pause, another link."""
    outage = st.sampled_from([_lossy(1, "up"), _lossy(1, "down"), _lossy(1, "up", "down")])
    errors = st.builds(_lossy, st.sampled_from((0.0, 0.1, 0.3, 0.6)), st.sampled_from(SIDES))
    # a pause ends no later than the world's ills do
    pause = st.booleans().map(lambda paused: {"paused": paused})
    plain = [name for name, scheme in SCHEMES.items() if scheme.split is None]
    scheme = st.sampled_from(plain).map(lambda name: {"link.scheme": name})
    return st.one_of(outage, errors, pause, *(() if splits else (scheme,)))


def _workload(rate_bps: int, number: int, size: int) -> st.SearchStrategy[dict[str, Any]]:
    common = {
        "flow": st.just(f"f{number}"),
        "port": st.just(5001 + 20 * number),
        "direction": st.sampled_from(SIDES),
        "start_s": st.sampled_from((0, 0.3, 2.0)),
    }
    bulk = {"kind": st.just("bulk"), "bytes": st.integers(1, size * rate_bps // 4), "flows": st.sampled_from((1, 1, 3))}
    short = {
        "kind": st.just("short"),
        "bytes": st.integers(1, 20_000),
        "count": st.integers(1, 4 * size),
        "gap_ms": st.sampled_from((0, 100, 900)),
    }
    udp = {
        "kind": st.just("onoff-udp"),
        "rate_bps": st.just(rate_bps // 8),
        "packet_bytes": st.sampled_from((44, 128)),
        "duration_s": st.just(2.0 * size),
    }
    return st.one_of(*(st.fixed_dictionaries({**common, **kind}) for kind in (bulk, bulk, short, udp)))


@st.composite
def worlds(draw: st.DrawFn, size: int = 1) -> World:
    """Draw a world that the scenario's schema takes.

    Its ills last up to `size` times 4 s, with up to as many times four changes and three faults, and as many data.
    """
    ills_ms = st.integers(0, 4_000 * size)
    scheme = draw(st.sampled_from(list(SCHEMES)))
    up, down = draw(_direction()), draw(_direction())
    slower = min(up["rate_bps"], down["rate_bps"])
    tcp = draw(st.sampled_from(list(USER_PROFILES)))
    times = sorted(draw(st.lists(ills_ms, max_size=4 * size, unique=True)))
    changes = [{"at_s": ms / 1000, "set": draw(_change(SCHEMES[scheme].split is not None))} for ms in times]
    faults = draw(
        st.lists(
            st.builds(
                Fault,
                at_s=ills_ms.map(lambda ms: ms / 1000),
                kind=st.sampled_from(("restart", "stall")),
                side=st.sampled_from(SIDES),
                for_s=st.sampled_from((0.01, 0.2, 2.0)),
            ),
            max_size=3 * size,
        )
    )
    heals_at_s = max([0.0, *(ms / 1000 for ms in times), *(each.at_s + each.for_s for each in faults)]) + 0.1
    healed = {**_lossy(HEALED_PER, *SIDES), "paused": False}
    filters = draw(st.lists(st.sampled_from(list(FILTERS)), max_size=1))
    raw = {
        "name": "faults",
        "tier": "model",
        "seed": draw(st.integers(0, 2**31)),
        "trace": False,
        "mtu": draw(st.sampled_from((296, 576, 1500))),
        "tcp": tcp,
        "tcp_h2": draw(st.sampled_from((tcp, *USER_PROFILES))),
        "receive_buffer_bytes": draw(st.sampled_from((None, 8_192, 32_768))),
        "link": {
            "scheme": scheme,
            "ip_queue_bytes": draw(st.sampled_from((6_000, 64_000, 500_000))),
            "queue": {"kind": draw(st.sampled_from(list(QUEUES)))},
            "filters": [name for name in filters if FILTERS[name] not in SCHEMES[scheme].filters],
        },
        "channel": {**up, "up": up, "down": down},
        "workloads": [draw(_workload(slower, number, size)) for number in range(draw(st.integers(1, 3)))],
        "changes": [*changes, {"at_s": heals_at_s, "set": healed}],
    }
    raw["limit_s"] = heals_at_s + _limit_s(raw)
    try:
        validate(raw, "faults")
    except ScenarioError:
        reject()
    return World(raw, tuple(faults), heals_at_s)


def _limit_s(raw: dict[str, Any]) -> float:
    """How long a world lives after it has healed: 500 times what its data take at the slower rate, and ten minutes.

    Where capacity is assigned on demand, or link ARQ's timer is shorter than its round trip, packets may take seconds.
    """
    rate_bps = min(raw["channel"][side]["rate_bps"] for side in SIDES)
    octets = sum(each.get("bytes", 0) * each.get("flows", 1) * each.get("count", 1) for each in raw["workloads"])
    return 600 + 500 * 8 * octets / rate_bps


# -- living --------------------------------------------------------------------------------------------------


@dataclass
class Life:
    """What a world has been through."""

    frames: int = 0
    looks: int = 0
    virtual_s: float = 0.0
    faults: int = 0
    packets: int = 0
    #: 1 for a world that went on to the end of its time: for want of capacity, or as a connection did not come about
    slow: int = 0
    #: 1 for a world in which the stations did not find each other, for want of frames that got through
    unborn: int = 0
    #: packets that are under way, by identity; kept, so that no other gets it
    given: dict[int, tuple[IpPacket, int]] = field(default_factory=dict)


def live_through(world: World) -> Life:
    """Run a world. Raises RuleBrokenError, or what the code itself raises."""
    life = Life()
    scenario = validate(world.scenario, "faults")
    _Lived(resolve(scenario), scenario, world, life).live()
    return life


class _Listening(Watch):
    """Notes when the transfers of a world go on."""

    def __init__(self, lived: "_Lived") -> None:
        self._lived = lived

    @override
    def delivered(self, flow: str, nbytes: int, now: int) -> None:
        self._lived.hear(now)


class _Lived(Simulation):
    """The run of a world."""

    def __init__(self, plan: Plan, scenario: Scenario, world: World, life: Life) -> None:
        super().__init__(plan, watch=_Listening(self), begun=self._begin)
        self._world, self._life = world, life
        self._max_rto_ns = max(scenario.own_tcp(host).timers.max_rto_ns for host in HOSTS)
        #: when the application of any transfer last read something, or octets crossed the link for the first time: ns
        #: since the start
        self.heard_at = round(world.heals_at_s * 1e9)
        #: octets that have crossed since then, and when the last ones did, by the side they were sent on
        self._crossed: Counter[Side] = Counter()
        self._crossed_at = dict.fromkeys(SIDES, 0)
        #: sequence number behind the last octet that has crossed
        self._furthest: dict[Flow, int] = {}
        # what may put a packet on the link again, make a new one of it, or forget that it has delivered it
        links = [scenario.link, *(then.link for _, then in scenario.steps())]
        schemes = {link.scheme for link in links}
        plugins = [each for link in links for each in link.packet_filters()]
        forgets = any(fault.kind == "restart" for fault in world.faults)
        self._splits = any(SCHEMES[scheme].split for scheme in schemes)
        self._strict = not (plugins or forgets or len(schemes) > 1 or self._splits)
        self._limit = scenario.link.ip_queue_bytes

    def live(self) -> None:
        life, clock = self._life, self._network.clock
        try:
            summary = self.run()
        except FadelabError as error:
            if not life.looks and self._loses_most:
                life.unborn = 1
                return
            raise RuleBrokenError(str(error)) from error
        life.virtual_s = clock.now / 1e9
        life.frames = sum(station.hop.frames for station in self._network.stations.values())
        life.slow = int(not summary.finished)
        if not summary.intact:
            raise RuleBrokenError("what arrived is not what was sent")
        for side, station in self._network.stations.items():
            held = footprint(station.link)
            if held > _MOST_HELD:
                raise RuleBrokenError(f"the link that transmits {side} holds {held:,} octets when all is over")

    def hear(self, now: int) -> None:
        """Note that a transfer goes on."""
        if now > self.heard_at:
            self.heard_at = now
            self._crossed.clear()

    def _patience_ns(self, now: int) -> int:
        """How long a transfer may be silent in a world that has healed.

        A retransmission timer that has backed off takes `max_rto` at most, and while 2 % of the frames are lost, eight
        such retransmissions in a row are not lost. Before each, what is queued has to cross, at the pace of the silence
        so far; a side on which nothing crosses for as long as eight timers take has none.
        """
        patience_ns = 8 * self._max_rto_ns
        wait_ns = 0
        for side, station in self._network.stations.items():
            if (crossed := self._crossed[side]) and now - self._crossed_at[side] < patience_ns:
                queued = sum(queue.nbytes for queue in station.queues)
                wait_ns = max(wait_ns, (now - self.heard_at) * queued // crossed)
        return patience_ns + 8 * wait_ns

    def _goes_on(self, connection: Connection) -> bool:
        """Whether a connection has still something to get across.

        Who has got everything and its FIN across may wait for ever for a peer that has given up (RFC 9293, FIN-WAIT-2),
        or that a splitting station has lost with all that it had acknowledged.
        """
        if connection.state is not State.FIN_WAIT_2:
            return True
        back = connection.flow.reversed()
        return not self._splits and any(host.has(back) for host in self._network.hosts.values())

    @property
    def _loses_most(self) -> bool:
        """Whether a direction has lost more than half of its frames, and of ten at least."""
        hops = [station.hop for station in self._network.stations.values()]
        return any(hop.frames >= 10 and hop.erased + hop.damaged > 0.5 * hop.frames for hop in hops)

    def _begin(self, network: LinkNetwork, traffic: Traffic) -> None:
        clock, epoch = network.clock, self._epoch
        for fault in self._world.faults:
            clock.at(epoch + round(fault.at_s * 1e9), self._strike, fault, OBSERVER)
        clock.at(clock.now, self._look, None, OBSERVER)

    def _strike(self, fault: Fault) -> None:
        network = self._network
        self._life.faults += 1
        if fault.kind == "restart":
            network.restart(fault.side)
            return
        station = network.stations[fault.side]
        station.stall()
        network.clock.at(network.clock.now + round(fault.for_s * 1e9), lambda _: station.go_on(), None, OBSERVER)

    def _on_crossing(self, side: Side, packet: IpPacket) -> None:
        life = self._life
        life.packets += 1
        now = self._network.clock.now - self._epoch
        if now > self.heard_at:
            self._crossed[side] += len(packet)
            self._crossed_at[side] = now
        if isinstance(packet, Segment) and packet.length:
            end = packet.seq + packet.length & MASK
            if packet.flow not in self._furthest or precedes(self._furthest[packet.flow], end):
                self._furthest[packet.flow] = end
                self.hear(now)
        if self._strict:
            _, times = life.given.get(id(packet), (packet, 0))
            life.given[id(packet)] = packet, times + 1
            if times:
                raise RuleBrokenError(f"the link that transmits {side} has delivered {packet} twice")
        super()._on_crossing(side, packet)

    def _look(self, _: object) -> None:
        """Look at everything; the events of this instant have happened."""
        clock, life = self._network.clock, self._life
        life.looks += 1
        for side, station in self._network.stations.items():
            where = f"at {(clock.now - self._epoch) / 1e9:g} s, station that transmits {side}"
            if not station.stalled:
                _in_future(station.link.next_deadline, clock.now, f"{where}: its link's timer")
                _in_future(station.hop.next_deadline, clock.now, f"{where}: its hop's timer")
            for queue in station.queues:
                _within(queue.nbytes, 0, self._limit + self._plan.mtu_bytes, f"{where}: octets in its queue")
            _within(station.hop.held, 0, 1 << 20, f"{where}: frames in its hop")
        for connection in self._traffic.sending():
            where = f"at {(clock.now - self._epoch) / 1e9:g} s, {connection.flow}"
            _within(connection.cwnd, int(connection.connected), 1 << 30, f"{where}: cwnd")
            _within(connection.flight, 0, 1 << 30, f"{where}: flight")
            _in_future(connection.next_deadline, clock.now, f"{where}: its timer")
        now = clock.now - self._epoch
        silent_ns = now - self.heard_at
        if any(map(self._goes_on, self._traffic.sending())) and silent_ns > self._patience_ns(now):
            raise RuleBrokenError(f"no transfer has got anything across for {silent_ns / 1e9:g} s")
        ill = now < self._world.heals_at_s * 1e9
        clock.at(clock.now + (_LOOK_NS if ill else _SELDOM_NS), self._look, None, OBSERVER)


def _in_future(deadline: Callable[[], int | None], now: int, what: str) -> None:
    at = deadline()
    if at is not None and at <= now:
        raise RuleBrokenError(f"{what} is {at}, and it is {now}")


def _within(value: int, least: int, most: int, what: str) -> None:
    if not least <= value <= most:
        raise RuleBrokenError(f"{what} are {value:,}: must be {least:,} to {most:,}")
