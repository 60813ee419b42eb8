"""Resolves a scenario into the plan of its run (`run_plan.py`). No other code reads a scenario's parts for a run."""

from functools import partial
from typing import Final

from channel.capacity import CAPACITY_MODELS
from channel.delay import ExcessDelay
from channel.errors import ERROR_MODELS
from channel.framing import Framing, aal5, aal5_llc, raw
from common.sides import HOSTS, SIDES, Side, other
from common.units import MS, SECOND
from hosts.engine.split_pairs import relay_config
from hosts.tcp.config import TcpConfig
from hosts.tcp.profiles import USER_PROFILES
from linklayer.classify import Classifier
from linklayer.queues import QUEUES
from linklayer.schemes import SCHEMES
from testbed.scenario.plugin_options import options_of
from testbed.scenario.radio import MAX_RATE_SPS
from testbed.scenario.run_plan import (
    ENDS,
    AirPath,
    Chosen,
    HopPlan,
    HostPlan,
    LinkPlan,
    Plan,
    PlannedChange,
    RadioPlan,
    SplitPlan,
    StationPlan,
    make_rng,
)
from testbed.scenario.schema import Direction, Scenario
from testbed.tiers import TIERS

_FRAMINGS: Final[dict[str, Framing]] = {"raw": raw, "aal5": aal5, "aal5-llc": aal5_llc}
#: IPv4 and TCP headers
_HEADER_BYTES: Final = 40
#: period of the two timer ticks of 4.4BSD together (500 and 200 ms)
_CLOCKS_NS: Final = 1_000_000_000


def resolve(scenario: Scenario) -> Plan:
    """Return the plan of a scenario's run."""
    tier, link, radio, timing = TIERS[scenario.tier], scenario.link, scenario.radio, scenario.timing
    directions = {side: scenario.channel.direction(side) for side in SIDES}
    workloads = tuple(scenario.make_workloads())
    scheme, options = SCHEMES[link.scheme], link.scheme_options()
    filters = tuple(
        Chosen(plugin, link.options_at(plugin.options_key, plugin.options)) for plugin in link.packet_filters()
    )
    # None: the profile's
    nbytes = scenario.receive_buffer_bytes
    buffer = {} if nbytes is None else {"receive_buffer": nbytes}
    hosts = {
        host: HostPlan(
            tcp=scenario.tcp_of(host),
            label=scenario.tcp_label(host),
            changes=scenario.tcp_changes(host),
            receive_buffer_bytes=scenario.receive_buffer_bytes,
            config=scenario.own_tcp(
                host,
                mss=scenario.mtu - _HEADER_BYTES,
                # hosts boot at different times, so their TCP timer ticks have different phases
                clock_phase_ns=make_rng(scenario.seed, "clock", host).randrange(_CLOCKS_NS),
                **buffer,
            )
            if tier.simulated
            else None,
        )
        for host in HOSTS
    }
    hops = {side: _hop(scenario, side, directions[side]) for side in SIDES}
    split = _split(scenario, scheme.split, hosts["h2"].config) if scheme.split else None
    queue = QUEUES[link.queue.kind]
    second = scenario.of_second_link()
    return Plan(
        name=scenario.name,
        stem=scenario.stem,
        tier=tier,
        clock=scenario.clock or tier.clocks[0],
        seed=scenario.seed,
        mtu_bytes=scenario.mtu,
        max_frame_bytes=scenario.max_frame_bytes,
        scheme=scheme,
        classifier=Classifier(link.fast.dscp, link.fast.protocols),
        stations={
            side: StationPlan(
                side=side,
                seed=scenario.seed,
                link=LinkPlan(
                    end=ENDS[side],
                    scheme=scheme,
                    options=options,
                    filters=filters,
                    frame_ms=hops[other(side)].frame_ns(scenario.max_frame_bytes) / MS,
                ),
                hop=hops[side],
                air=_air(directions[side]),
                queue=Chosen(queue, options_of(link.queue, queue.options)),
                ip_queue_bytes=link.ip_queue_bytes,
                mtu_bytes=scenario.mtu,
                max_frame_bytes=scenario.max_frame_bytes,
            )
            for side in SIDES
        },
        hosts=hosts,
        workloads=workloads,
        split=split,
        second=None if second is None else resolve(second),
        wire_bps=scenario.wired.rate_bps,
        wire_delay_ns=round(scenario.wired.delay_ms * MS),
        radio=RadioPlan(
            phy=radio.phy,
            phy_options={side: radio.phy_options(side) for side in SIDES},
            rate_sps=radio.rate_sps,
            most_sps=min(MAX_RATE_SPS, radio.spacing_hz),
            carriers_hz={"up": radio.up_hz, "down": radio.down_hz},
            tx_gain_db=radio.tx_gain_db,
            rx_gain_db=None if radio.rx_gain_db == "auto" else radio.rx_gain_db,
            devices=radio.devices,
            front_end=radio.front_end(),
            access=radio.access_options(),
            record=radio.record,
            chooses_modes=radio.modes == "auto",
        ),
        late_bound_ns=round(timing.late_bound_ms * MS),
        late_fraction=timing.late_fraction,
        probe_interval_ms=timing.probe_interval_ms,
        trace=scenario.trace,
        capture=scenario.capture,
        limit_s=scenario.limit_s,
        changes=tuple(
            PlannedChange(
                at_ns=round(change.at_s * SECOND), settings=change.set, paused=change.paused, plan=resolve(after)
            )
            for change, after in scenario.steps()
        ),
        values=scenario.plain(),
    )


def _hop(scenario: Scenario, side: Side, out: Direction) -> HopPlan:
    """Return one direction of the medium.

    With flow control the MAC buffer holds two frames or 4 ms of the rate: the transmitter never runs dry, and
    retransmissions wait only briefly. Without flow control it is the only queue.
    """
    capacity, errors, excess = CAPACITY_MODELS[out.assignment.kind], ERROR_MODELS[out.errors.model], out.excess_delay
    paced = out.mac_buffer_bytes or max(2 * scenario.max_frame_bytes, out.rate_bps // 8 * 4 // 1000)
    return HopPlan(
        side=side,
        seed=scenario.seed,
        rate_bps=out.rate_bps,
        propagation_ns=round(out.delay_ms * MS),
        framing=_FRAMINGS[out.framing],
        capacity=Chosen(capacity, options_of(out.assignment, capacity.options)),
        errors=Chosen(errors, options_of(out.errors, errors.options)),
        excess_delay=None if excess is None else partial(ExcessDelay, excess.probability, round(excess.hold_ms * MS)),
        far_bytes=None if excess is None else excess.buffer_bytes,
        buffer_bytes={True: paced, False: out.bare_buffer_bytes or scenario.link.ip_queue_bytes + paced},
    )


def _air(out: Direction) -> AirPath:
    fading = out.fading
    return AirPath(
        snr_db=out.snr_db,
        cfo_hz=out.cfo_hz,
        taps=() if fading is None else fading.taps(),
        series=None if fading is None else fading.series,
    )


def _split(scenario: Scenario, profile: str, fixed: TcpConfig | None) -> SplitPlan:
    """Return the base station that splits connections; `fixed` is h2's own TCP, where the hosts are objects.

    There its TCP on the wired side is a relay's of h2's. On the wireless side it is the same with the profile's
    loss recovery.
    """
    buffer_bytes, wired, wireless = scenario.link.split_buffer_bytes, None, None
    if fixed is not None:
        wired = relay_config(fixed, mss=fixed.handshake.mss, window=buffer_bytes, clock_phase_ns=0)
        wireless = wired.but(recovery=USER_PROFILES[profile].config.recovery.name)
    return SplitPlan(profile=profile, buffer_bytes=buffer_bytes, wired=wired, wireless=wireless)
