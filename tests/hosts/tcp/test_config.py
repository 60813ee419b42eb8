"""What a configuration may say."""

from dataclasses import fields
from typing import Any

import pytest

from common.units import MS, SECOND
from hosts.tcp import options
from hosts.tcp.config import TcpConfig

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
    "eln": "ignore",
}  # fmt: skip


def test_defaults_are_the_standards_and_all_else_is_off() -> None:
    groups = [each for name, each in vars(options).items() if name.endswith("Options")]
    defaults = {field.name: field.default for group in groups for field in fields(group)}
    assert {name: value for name, value in defaults.items() if value or name in STANDARD | CHOSEN} == STANDARD | CHOSEN
    assert (options.MAX_WINDOW_SCALE, options.MAX_UNSCALED_WINDOW) == (14, 65_535)


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
        ({"growth": "westwood"}, "growth is 'westwood': must be one of cubic, cubic-linux, .*standard"),
        ({"growth": "cubic", "beta": 1.5}, "beta is 1.5: must be below 1"),
        ({"beta": 0.5}, "beta: this TCP has no such option"),
        ({"tick_ns": -1}, "tick_ns is -1: must be 0 or more"),
        ({"data_retries": -1}, "data_retries is -1: must be 0 or more"),
        ({"min_rto_ns": 2 * SECOND, "max_rto_ns": SECOND}, "max_rto_ns is 1000000000: must be min_rto_ns or more"),
        ({"delayed_ack_ns": 501 * MS}, "delayed_ack_ns is 501000000: must be 500000000 or less"),
        ({"send_buffer": 100}, "send_buffer is 100: must be mss or more"),
        ({"window_scaling": False, "receive_buffer": 65_536}, "receive_buffer is 65536: must be 65535 at most"),
        ({"receive_buffer": (65_535 << 14) + 1}, "receive_buffer is 1073725441: must be 1073725440 at most"),
    ],
)
def test_what_is_out_of_range_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        TcpConfig().but(**changes)
