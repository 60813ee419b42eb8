"""What a configuration may say."""

from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from common.units import MS, SECOND
from hosts.tcp import options
from hosts.tcp.config import TcpConfig, choose
from hosts.tcp.profiles import USER_PROFILES

#: RFC 9293 sections 3.7.1 and 3.8.6.3, RFC 7323, RFC 3042, RFC 5681 section 3.1 and 4.1, RFC 6298 section 2, RFC 896
STANDARD: dict[str, Any] = {
    "mss": 1460, "window_scaling": True, "timestamps": True, "limited_transmit": True, "initial_window": 3,
    "restart_after_idle": True, "delayed_ack_ns": 200 * MS, "ack_every": 2, "initial_rto_ns": SECOND,
    "min_rto_ns": SECOND, "max_rto_ns": 60 * SECOND, "granularity_ns": MS, "nagle": True,
}  # fmt: skip
#: as in Linux: its limits of retries, its TIME-WAIT; ours: buffers, FEC where it is asked for, holes that are jumped
CHOSEN: dict[str, Any] = {
    "syn_retries": 6, "data_retries": 15, "time_wait_ns": 60 * SECOND, "receive_buffer": 65_535,
    "send_buffer": 1 << 20, "min_mss": 150, "window_segments": 10, "fec_confidence": 0.5, "jumped_is_congestion": True,
    "eln": "ignore", "max_doublings": 64, "most_redundancy": 1.0,
    **dict.fromkeys((
        "grow_in_recovery", "repeat_cwr", "grow_by_full_segments", "wait_for_fec", "room_for_received",
        "count_repairs", "count_by_report", "repair_again", "forget_losses",
    ), True),
}  # fmt: skip


def test_defaults_are_the_standards_and_all_else_is_off() -> None:
    groups = [each for name, each in vars(options).items() if name.endswith("Options")]
    defaults = {field.name: field.default for group in groups for field in fields(group)}
    assert {name: value for name, value in defaults.items() if value or name in STANDARD | CHOSEN} == STANDARD | CHOSEN
    assert (options.MAX_WINDOW_SCALE, options.MAX_UNSCALED_WINDOW) == (14, 65_535)


#: Linux's TCP_INIT_CWND, TCP_DELACK_MIN, TCP_RTO_MIN (of the variance term, too), TCP_RTO_MAX, tcp_wmem
LINUX: dict[str, Any] = {
    "initial_window": 10, "delayed_ack_ns": 40 * MS, "min_rto_ns": 200 * MS, "granularity_ns": 200 * MS,
    "max_rto_ns": 120 * SECOND, "receive_buffer": 4 << 20, "send_buffer": 4 << 20, "written_ahead": 64 << 10,
    "forgiven_syns": 1,
}  # fmt: skip
#: Linux 2.4's TCP_DELACK_MAX, TCP_TIMEOUT_INIT, TCP_RTO_MIN, TCP_RTO_MAX
OLD: dict[str, Any] = {
    "delayed_ack_ns": 200 * MS, "initial_rto_ns": 3 * SECOND, "min_rto_ns": 200 * MS, "granularity_ns": 200 * MS,
    "max_rto_ns": 120 * SECOND, "window_scaling": False, "timestamps": False,
}  # fmt: skip
#: 4.4BSD's: the first timeout, TCPTV_MIN, TCPTV_REXMTMAX, the slow clock and the fast one
BSD: dict[str, Any] = {
    "initial_window": 1, "initial_rto_ns": 6 * SECOND, "min_rto_ns": SECOND, "max_rto_ns": 64 * SECOND,
    "tick_ns": SECOND // 2, "delayed_ack_ns": 200 * MS, "receive_buffer": 32 << 10, "window_scaling": False,
    "timestamps": False, "limited_transmit": False, "ack_at_tick": True,
}  # fmt: skip
ROOMY: dict[str, Any] = {"receive_buffer": 1 << 20}
SYSTEMS: dict[str, dict[str, Any]] = {
    "modern": {**LINUX, "frto": True, "dsack": True},
    "sack-eln": {**LINUX, **ROOMY, "max_rto_ns": 60 * SECOND, "send_buffer": 1 << 20, "written_ahead": None},
    "bsd": BSD,
    "reference": {**OLD, "initial_window": 1, "limited_transmit": False, "receive_buffer": 65_535},
    "enhanced": {
        **OLD,
        "initial_window": 4,
        "limited_transmit": True,
        "window_scaling": True,
        "daass": True,
        "cbi": False,
    },
    "enhanced-cbi": {"cbi": True, "initial_window": 4},
    "enhanced-no-daass": {"daass": False, "frto": True},
    "slowlink-newreno": {**OLD, "initial_window": 2, "limited_transmit": False},
    "slowlink-iw4": {**OLD, "initial_window": 4, "limited_transmit": False},
    "slowlink-sack-lt": {**OLD, "initial_window": 2, "limited_transmit": True},
    "slowlink-fack-lt": {**OLD, "initial_window": 2, "limited_transmit": True},
    "lt-ecn": {**ROOMY, "ecn": True, "ecn_only": True, "adaptive_mss": False, "proactive_fec": False},
    "lt-mss": {"adaptive_mss": True, "proactive_fec": False, "reactive_fec": False},
    "lt-proactive": {"adaptive_mss": True, "proactive_fec": True, "reactive_fec": False},
    "lt-reactive": {"adaptive_mss": True, "proactive_fec": False, "reactive_fec": True},
    "lt-tcp": {**ROOMY, "adaptive_mss": True, "proactive_fec": True, "reactive_fec": True},
    "sack-2005": {
        "ecn": True,
        "ecn_only": False,
        "adaptive_mss": False,
        "delayed_ack_ns": 0,
        "timestamps": False,
        "initial_window": 2,
        "initial_rto_ns": 6 * SECOND,
        "min_rto_ns": SECOND,
        "max_doublings": 6,
        "time_one": True,
    },
    "lt-tcp-2005": {"count_repairs": False, "repair_again": False, "count_by_report": False, "fec_confidence": 0.99},
    "sack": {**STANDARD, **ROOMY, "ecn": False},
    "sack-ecn": {**ROOMY, "ecn": True},
}


@pytest.mark.parametrize(("name", "values"), SYSTEMS.items(), ids=SYSTEMS)
def test_profiles_have_the_constants_of_their_systems_and_papers(name: str, values: dict[str, Any]) -> None:
    config = USER_PROFILES[name].config
    groups = [getattr(config, each.name) for each in fields(config) if is_dataclass(getattr(config, each.name))]
    told = {each.name: getattr(group, each.name) for group in groups for each in fields(group) if each.name != "name"}
    assert {key: told[key] for key in values} == values


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mss": 63}, "mss is 63: must be 64 or more"),
        ({"mss": 65_496}, "mss is 65496: must be 65495 or less"),
        ({"initial_window": 0}, "initial_window is 0: must be 1 or more"),
        ({"ack_every": 0}, "ack_every is 0: must be 1 or more"),
        ({"min_rto_ns": 0}, "min_rto_ns is 0: must be above 0"),
        ({"receive_buffer": 0}, "receive_buffer is 0: must be above 0"),
        ({"recovery": "vegas"}, "recovery is 'vegas': must be one of fack, newreno, .*"),
        ({"growth": "westwood"}, "growth is 'westwood': must be one of .*cubic, cubic-linux, .*standard"),
        ({"growth": "cubic", "beta": 1.5}, "beta is 1.5: must be below 1"),
        ({"beta": 0.5}, "beta: this TCP has no such option"),
        ({"tick_ns": -1}, "tick_ns is -1: must be 0 or more"),
        ({"data_retries": -1}, "data_retries is -1: must be 0 or more"),
        ({"min_rto_ns": 2 * SECOND, "max_rto_ns": SECOND}, "max_rto_ns is 1000000000: must be min_rto_ns or more"),
        ({"ack_at_tick": True, "delayed_ack_ns": 0}, "delayed_ack_ns is 0: must be above 0 where ack_at_tick is set"),
        ({"tick_ns": SECOND // 2}, "timestamps is True: must be off where there is a tick_ns"),
        ({"min_mss": 1461}, "min_mss is 1461: must be mss, 1460, at most"),
        ({"delayed_ack_ns": 501 * MS}, "delayed_ack_ns is 501000000: must be 500000000 or less"),
        ({"send_buffer": 100}, "send_buffer is 100: must be mss or more"),
        ({"window_scaling": False, "receive_buffer": 65_536}, "receive_buffer is 65536: must be 65535 at most"),
        *(
            ({"accecn": True, fec: True}, "accecn is True: must be off where there is proactive_fec or reactive_fec")
            for fec in ("proactive_fec", "reactive_fec")
        ),
        ({"receive_buffer": (65_535 << 14) + 1}, "receive_buffer is 1073725441: must be 1073725440 at most"),
    ],
)
def test_what_is_out_of_range_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        TcpConfig().but(**changes)


@pytest.mark.parametrize(
    ("seam", "name", "has"), [("growth", "cubic", ".*, beta, .*"), ("recovery", "newreno", "[a-z_]+(, [a-z_]+)*")]
)
def test_an_option_that_a_choice_has_not_is_named_with_those_that_it_has(seam: str, name: str, has: str) -> None:
    with pytest.raises(ValueError, match=f"^{seam} {name} has no option gain: it has {has}$"):
        choose(seam, name, gain=2)
