"""The capabilities that the processes of a live run keep, as the kernel tells of each of their threads."""

import signal
from pathlib import Path

import pytest

from hosts.kernel.privileges import CAP_DAC_OVERRIDE, CAP_NET_ADMIN, CAP_NET_BIND_SERVICE, CAP_SYS_NICE
from tests.harness.live_runs import children_once_up, crossed_bytes, finish, start
from tests.harness.scenarios import scenario, written
from tests.harness.waiting import wait_for
from tests.hosts.harness import needs_network

pytestmark = [*needs_network, pytest.mark.patient]

STATION = {CAP_DAC_OVERRIDE, CAP_SYS_NICE}
NETWORK = {CAP_DAC_OVERRIDE, CAP_NET_BIND_SERVICE, CAP_NET_ADMIN}


def privileges(pid: int) -> set[tuple[frozenset[int], frozenset[int], str]]:
    """Effective and permitted capabilities of a process's threads, and whether they can gain others."""
    found = set()
    for thread in Path(f"/proc/{pid}/task").iterdir():
        lines = (thread / "status").read_text().splitlines()
        said = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
        found.add((numbers(said["CapEff"]), numbers(said["CapPrm"]), said["NoNewPrivs"]))
    return found


def numbers(mask: str) -> frozenset[int]:
    return frozenset(number for number in range(64) if int(mask, 16) >> number & 1)


@pytest.mark.parametrize("tcp", ["cubic", "user:sack"])
def test_live_run_keeps_no_capability_that_it_does_not_need_once_it_has_begun(tcp: str, tmp_path: Path) -> None:
    scheme = "split" if tcp == "cubic" else "slacp"
    made = scenario(
        tier="emulated", tcp=tcp, link={"scheme": scheme}, workloads=[{"kind": "bulk", "duration_s": 600}], limit_s=600
    )
    # hosts, proxy, stations
    kept = [NETWORK, NETWORK, *([NETWORK] if scheme == "split" else []), STATION, STATION]
    process = start("run", written(tmp_path / "s.yaml", made), "--allow-late", "--out", tmp_path / "runs")
    try:
        pids = children_once_up(process, len(kept))
        wait_for(lambda: crossed_bytes(process) > 20_000)
        assert [privileges(pid) for pid in pids] == [{(frozenset(some), frozenset(some), "1")} for some in kept]
    finally:
        process.send_signal(signal.SIGINT)
        status, _, err = finish(process)
    # all could still tidy up
    assert (status, "Traceback" in err) == (130, False), err


def test_host_with_programs_keeps_all_for_them(tmp_path: Path) -> None:
    work = {"kind": "program", "tool": "iperf3", "duration_s": 60}
    made = scenario(tier="emulated", link={"scheme": "slacp"}, workloads=[work], limit_s=100)
    process = start("run", written(tmp_path / "s.yaml", made), "--allow-late", "--out", tmp_path / "runs")
    try:
        pids = children_once_up(process, 4)
        wait_for(lambda: crossed_bytes(process) > 20_000)
        ours = privileges(process.pid)
        assert [privileges(pid) == ours for pid in pids] == [True, True, False, False]
    finally:
        process.send_signal(signal.SIGINT)
        finish(process)
