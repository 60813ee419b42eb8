"""Cases of ProbeRTT: sections A.10, A.11 and A.20."""

from collections.abc import Mapping

from common.units import SECOND
from experiments.bbr_cases.cases.case import New, Number, case, yes
from experiments.bbr_cases.cases.scripting import CRUISE, PROBE_RTT, PROBE_RTT_INTERVAL_S, enter, utilisation
from experiments.bbr_cases.flow import PROBE_BW
from hosts.tcp.growth.bbr3 import State


@case(
    "a10",
    "entering and leaving ProbeRTT",
    Number(
        name="interval", step="2", words="it comes when 5 s have brought no lower delay, 0.1 s later at most",
        low=PROBE_RTT_INTERVAL_S, high=PROBE_RTT_INTERVAL_S + 0.1, unit="s", whose="ours",
    ),
    Number(name="gain", step="3", words="the cwnd gain is 0.5", low=0.5, high=0.5, unit="gain"),
    Number(name="duration", step="4", words="it lasts 200 ms or more", low=0.2, unit="s"),
    Number(name="rounds", step="4", words="and a round trip or more", low=1, unit="rounds"),
    yes("probe_bw", "5", "ProbeBW follows"),
    Number(
        name="resumed", step="5", words="the next second carries half of the path or more", low=0.5, unit="share",
        whose="ours",
    ),
)  # fmt: skip
def _probe_rtt(new: New) -> Mapping[str, float]:
    flow = new()
    flow.write_all()
    stamps = [0]

    def note() -> None:
        if flow.state is not PROBE_RTT:
            stamps[0] = flow.bbr.probe_rtt_min_stamp

    if not flow.enter(*PROBE_BW):
        return {}
    flow.looked = note
    if not flow.enter(PROBE_RTT):
        return {}
    entered, gain = flow.seen[-1], flow.bbr.cwnd_gain
    interval = (entered.at - stamps[0]) / SECOND
    left = flow.leave()
    if left is None:
        return {}
    return {
        "interval": interval,
        "gain": gain,
        "duration": (left.at - entered.at) / SECOND,
        "rounds": left.round_count - entered.round_count,
        "probe_bw": left.state in PROBE_BW,
        "resumed": utilisation(flow, 1),
    }


@case(
    "a11",
    "no ProbeRTT after an idle time",
    yes("idle_restart", "4", "the first segment after 6 s without data sets idle_restart"),
    Number(name="probe_rtts", step="5", words="no ProbeRTT in the 4 s after it", high=0, unit="times"),
)
def _idle(new: New) -> Mapping[str, float]:
    flow = new()
    flow.write_all()
    if not enter(flow, CRUISE):
        return {}
    flow.write_at(0)
    flow.after(6)
    if flow.delivery.inflight:
        return {}
    restarts: list[bool] = []
    flow.left = lambda: restarts.append(flow.bbr.idle_restart)
    before = len(flow.seen)
    flow.write_all()
    flow.after(4)
    return {
        "idle_restart": restarts[0],
        "probe_rtts": sum(each.state is PROBE_RTT for each in flow.seen[before:]),
    }


@case(
    "a20",
    "entering and leaving ProbeRTT in Startup",
    yes("entered", "1", "ProbeRTT comes in a slow Startup, before full_bw_reached"),
    yes("startup", "3", "Startup follows, and not ProbeBW"),
)
def _probe_rtt_in_startup(new: New) -> Mapping[str, float]:
    flow = new()
    flow.write_at(0.2 * flow.payload_rate)
    if not flow.enter(PROBE_RTT, most_s=20):
        return {}
    entered, early = flow.seen[-1], not flow.bbr.full_bw_reached
    left = flow.leave()
    if left is None:
        return {}
    return {"entered": entered.before is State.STARTUP and early, "startup": left.state is State.STARTUP}
