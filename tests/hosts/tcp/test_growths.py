"""The courses of window growths, as they were: losses, timeouts and pauses, on a short and on a long path."""

import hashlib
from typing import Any

import pytest

from common.units import MS, SECOND
from tests.hosts.tcp.growing import SMSS, grown, sender_of


def course(name: str, rtt_ms: int, **options: Any) -> list[tuple[int, int]]:
    """The window and ssthresh after every ACK."""
    sender = sender_of(20, srtt_ns=rtt_ms * MS)
    growth = grown(name, sender, **options)
    now, found = SECOND, []
    for step in range(400):
        if step in (20, 40, 150, 155):
            growth.hold(growth.handle_loss(growth.cwnd))
        if step in (80, 300):
            growth.handle_timeout(growth.cwnd, SMSS, first=step == 80, recovering=False)
        # every third ACK is of two segments and a half, and the round trip varies
        sender.rto.srtt_ns = (rtt_ms + step % 7) * MS
        for place in range(8):
            growth.handle_ack(SMSS * 5 // 2 if place % 3 == 1 else SMSS, now + place * MS)
            found.append((growth.cwnd, growth.ssthresh))
        now += (rtt_ms if step % 50 else 20 * rtt_ms) * MS
    return found


@pytest.mark.parametrize(
    ("name", "options", "fingerprint"),
    [
        ("standard", {}, "e84a2f736aa7cace"),
        ("standard", {"byte_counting": True}, "7967a6153e26fa34"),
        (
            "standard",
            {"halve_window": True, "extra_increase": True, "slow_start_at_ssthresh": True},
            "c05ad8c7fceb55ca",
        ),
        ("cubic", {}, "faa8c0b83d27697c"),
        ("cubic", {"byte_counting": True, "whole_segments": True, "beta": 0.6, "c": 1.5}, "f5583b4202340e19"),
        ("cubic-linux", {}, "bec4d4b18f9f7354"),
    ],
)
def test_windows_are_what_they_were(name: str, options: dict[str, Any], fingerprint: str) -> None:
    found = [course(name, rtt_ms, **options) for rtt_ms in (10, 300)]
    assert hashlib.sha256(repr(found).encode()).hexdigest()[:16] == fingerprint
