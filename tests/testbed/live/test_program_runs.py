"""Programs of others across the link of a run."""

import json
import shutil
from pathlib import Path

import pytest

from testbed.live.children import ChildError
from testbed.running import run_once
from tests.harness.live_runs import Capture, folder_of, refused, tell_lateness
from tests.harness.scenarios import scenario
from tests.hosts.harness import needs_network

needs_iperf3 = pytest.mark.skipif(shutil.which("iperf3") is None, reason="needs iperf3: apt-get install iperf3")
RATE_BPS = 2_000_000
WORK = {"kind": "program", "tool": "iperf3", "duration_s": 2}


class TestLive:
    pytestmark = needs_network

    @needs_iperf3
    @pytest.mark.light
    def test_figures_of_iperf3_stand_beside_the_links(self, tmp_path: Path) -> None:
        summary = run_once(scenario(workloads=[WORK]), tmp_path, lambda progress: None)
        tell_lateness(summary)
        [flow] = summary.flows
        assert flow.told is not None
        assert flow.finished
        # the link has carried what iperf3 says has arrived, in packets of 1448 octets at most
        assert flow.told.bytes <= 1448 * summary.link["up"].packets
        assert 0.5 * RATE_BPS < flow.goodput_bps < RATE_BPS
        # both ways the propagation takes 25 ms
        assert flow.told.delay_ms is not None
        assert flow.told.delay_ms >= 50
        stored = json.loads((folder_of(summary) / "summary.json").read_text())
        assert stored["flows"][0]["told"]["bytes"] == flow.bytes == flow.told.bytes

    @needs_iperf3
    @pytest.mark.light
    def test_a_client_that_fails_ends_the_run_in_one_line(self, tmp_path: Path) -> None:
        made = scenario(workloads=[WORK | {"arguments": "--no-such-option"}])
        with pytest.raises(ChildError, match=r"^host h1: flow program: iperf3 ended with status 1: [^\n]*$"):
            run_once(made, tmp_path, lambda progress: None)


def test_programs_need_linux(capsys: Capture) -> None:
    line = refused(capsys, "run", "scenarios/program.yaml", "--tier", "model")
    assert "workloads.0.kind program needs Linux, and tier model has none: run --tier emulated, usrp, vusrp" in line


def test_a_size_that_a_program_needs_is_missing_in_one_line(capsys: Capture) -> None:
    line = refused(capsys, "run", "scenarios/program.yaml", "--set", "workloads.0.tool=curl")
    assert "workloads.0: tool curl needs bytes" in line
