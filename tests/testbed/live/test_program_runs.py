"""Programs of others across the link of a run."""

import json
import os
import shutil
from pathlib import Path

import pytest

from testbed.live.children import ChildError
from testbed.running import run_once
from tests.harness.live_runs import Capture, folder_of, refused, tell_lateness
from tests.harness.scenarios import scenario
from tests.hosts.harness import needs_network


def needs(program: str) -> pytest.MarkDecorator:
    # where `KernelPrograms` looks for it
    found = shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    return pytest.mark.skipif(found is None, reason=f"needs {program}: apt-get install {program}")


needs_iperf3 = needs("iperf3")
RATE_BPS = 2_000_000
WORK = {"kind": "program", "tool": "iperf3", "duration_s": 2}


def changed(*settings: str) -> list[str]:
    """The words that run the scenario with changes of its workload."""
    return [
        "run",
        "scenarios/program.yaml",
        *(word for setting in settings for word in ("--set", f"workloads.0.{setting}")),
    ]


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

    @needs("curl")
    @needs("nginx")
    @pytest.mark.light
    def test_curl_loads_the_whole_file_from_nginx(self, tmp_path: Path) -> None:
        made = scenario(workloads=[{"kind": "program", "tool": "curl", "bytes": 200_000}])
        summary = run_once(made, tmp_path, lambda progress: None)
        tell_lateness(summary)
        [flow] = summary.flows
        assert flow.told is not None
        assert flow.told.bytes == flow.bytes == 200_000
        # the server sends, in the direction of the flow, in packets of 1448 octets at most
        assert flow.direction == "up"
        assert 1448 * summary.link["up"].packets >= 200_000
        assert flow.goodput_bps < RATE_BPS
        # a SYN and its answer
        assert flow.told.delay_ms is not None
        assert 50 <= flow.told.delay_ms < 1e3 * flow.told.duration_s

    @needs("irtt")
    @pytest.mark.light
    def test_irtt_counts_packets_there_and_back(self, tmp_path: Path) -> None:
        made = scenario(workloads=[WORK | {"tool": "irtt"}], channel={"per": 0.05}, link={"scheme": "none"})
        summary = run_once(made, tmp_path, lambda progress: None)
        tell_lateness(summary)
        [flow] = summary.flows
        assert flow.told is not None
        assert flow.told.lost is not None
        # of 160 octets, every 20 ms for 2 s, and none repairs the losses; a busy machine misses some of the times
        arrived, rest = divmod(flow.told.bytes, 160)
        assert rest == 0
        assert 50 < arrived + flow.told.lost <= 100
        assert flow.told.lost > 0
        # both ways the propagation takes 25 ms
        assert flow.told.delay_ms is not None
        assert flow.told.delay_ms >= 50

    @needs_iperf3
    @pytest.mark.light
    def test_a_client_that_fails_ends_the_run_in_one_line(self, tmp_path: Path) -> None:
        made = scenario(workloads=[WORK | {"arguments": "--no-such-option"}])
        with pytest.raises(ChildError, match=r"^host h1: flow program: iperf3 ended with status 1: [^\n]*$"):
            run_once(made, tmp_path, lambda progress: None)


def test_programs_need_linux(capsys: Capture) -> None:
    line = refused(capsys, "run", "scenarios/program.yaml", "--tier", "model")
    assert "workloads.0.kind program needs Linux, and tier model has none: run --tier emulated, usrp, vusrp" in line


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (("tool=curl",), "workloads.0: tool curl needs bytes"),
        (("tool=irtt", "bytes=1000"), "workloads.0: tool irtt has no bytes: duration_s is its limit"),
    ],
)
def test_a_size_that_does_not_suit_a_program_is_one_line(capsys: Capture, settings: tuple[str, ...], line: str) -> None:
    assert line in refused(capsys, *changed(*settings))


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("iperf3", "-R"),
        ("iperf3", "-P 2 --reverse"),
        # getopt_long(3): unique abbreviations, and flags that share a word
        ("iperf3", "--rev"),
        ("iperf3", "-4R"),
        ("iperf3", "--bidir"),
        ("iperf3", "-s"),
        ("iperf3", "-c10.0.0.9"),
        ("iperf3", "--port=80"),
        ("iperf3", "-t 60"),
        ("irtt", "-d 60s"),
        ("curl", "-sI"),
        ("curl", "--upload-file x"),
    ],
)
def test_arguments_against_the_workload_are_one_line(capsys: Capture, tool: str, arguments: str) -> None:
    size = ("bytes=1000",) if tool == "curl" else ()
    word = next(word for word in arguments.split() if word not in ("-P", "2"))
    line = refused(capsys, *changed(f"tool={tool}", f"arguments={arguments}", *size))
    assert f"workloads.0: arguments {arguments!r}: {word} is not for them" in line
