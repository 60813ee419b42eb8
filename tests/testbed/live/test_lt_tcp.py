"""LT-TCP on a live link: two hosts' userspace TCPs over TUN, octets and zfec, tier `emulated`."""

from pathlib import Path

import pytest

from testbed.scenario.file import load
from tests.harness.live_runs import ROOT, run_all
from tests.hosts.harness import needs_network

pytestmark = [*needs_network, pytest.mark.light]

SCENARIO = ROOT / "scenarios" / "lt-tcp.yaml"


def test_two_megabytes_cross_a_link_that_loses_a_fifth(tmp_path: Path) -> None:
    # 200 s on this link is what SACK would take. A process that wakes late may cost a timeout, and so a second
    [summary] = run_all([load(SCENARIO, ("workloads.0.bytes=2000000", "timing.late_fraction=1"))], tmp_path)
    assert summary.finished
    assert summary.intact
    assert summary.duration_s < 10


@pytest.mark.parametrize("linux", ["h1", "h2"])
def test_a_kernel_sees_a_plain_tcp(linux: str, tmp_path: Path) -> None:
    names = {"tcp": "reno", "tcp_h2": "user:lt-tcp"} if linux == "h1" else {"tcp": "user:lt-tcp", "tcp_h2": "reno"}
    settings = [f"{key}={value}" for key, value in names.items()]
    settings += ["workloads.0.bytes=500000", "channel.errors.per=0.01", "timing.late_fraction=1"]
    [summary] = run_all([load(SCENARIO, settings)], tmp_path)
    assert summary.finished
    assert summary.intact
