"""`run` and `demo` as a shell sees them."""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from testbed.results import show
from tests.harness.live_runs import ROOT, complaint, fadelab, finish, left_behind, start
from tests.harness.radios import needs_vusrp
from tests.hosts.harness import needs_network

pytestmark = pytest.mark.slow

LOSSY = "scenarios/lossy-link.yaml"
NOBODY = 65534
SMALL = ("--set", "channel.rate_bps=4e6", "--set", "channel.delay_ms=2", "--set", "workloads.0.duration_s=1")


@pytest.mark.light
@pytest.mark.net
@needs_network[1]
def test_json_is_one_object_and_all_of_stdout(tmp_path: Path) -> None:
    process = start("run", LOSSY, "--json", "--allow-late", "--seed", "5", "--out", tmp_path, *SMALL)
    status, out, err = finish(process)
    assert status == 0, err
    result = json.loads(out)
    assert out.count("\n") == 1
    assert result.keys() >= {
        *("tier", "seed", "goodput_bps", "throughput_bps", "capacity_bps"),
        *("retransmissions", "timeouts", "late_events", "duration_s"),
    }
    assert (result["tier"], result["seed"], result["scheme"], result["duration_s"]) == ("emulated", 5, "slacp", 1)
    assert result["capacity_bps"] == 4_000_000
    assert 0 < result["goodput_bps"] <= result["throughput_bps"] <= result["capacity_bps"] * 1.05
    assert [path.name for path in tmp_path.iterdir()] == [result["run"]]
    assert left_behind(process.pid) == []


@pytest.mark.light
@pytest.mark.net
@needs_network[1]
@pytest.mark.parametrize(
    ("tier", "medium"),
    [
        # the rates are the machine's to decide
        pytest.param((), "SNR 15 dB, rician fading", marks=needs_vusrp),
        (("--tier", "emulated"), "PER 5 %"),
    ],
    ids=["vusrp", "emulated"],
)
def test_the_demo_ends_with_a_table_and_a_plot(tier: tuple[str, ...], medium: str, tmp_path: Path) -> None:
    process = start("demo", *tier, "--seconds", "2", "--out", tmp_path)
    status, out, err = finish(process)
    assert status == 0, err
    for piece in (medium, "without SLACP", "with SLACP", "MB received", "goodput", "demo.png"):
        assert piece in out
    # who wins two seconds of this air is the air's to say; the sentence says what the results do
    bare, slacp = (
        json.loads(next(tmp_path.glob(f"*-{scheme}-*/summary.json")).read_text())["goodput_bps"]
        for scheme in ("none", "slacp")
    )
    assert re.sub(r"\[/?\w*\]", "", show.comparison(bare, slacp)) in out
    assert "…" not in out
    # the picture's path alone may be longer
    assert max(len(line) for line in out.splitlines() if "demo.png" not in line) <= 80
    [picture] = tmp_path.glob("*/demo.png")
    assert picture.stat().st_size > 10_000
    assert len(list(tmp_path.iterdir())) == 2
    assert left_behind(process.pid) == []


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((LOSSY, "--tier", "model", "--tcp", "cubic"), "tcp 'cubic' cannot run on tier model, which has no kernel"),
        ((LOSSY, "--tier", "moon"), "'moon' is not one of"),
    ],
)
def test_wrong_run_arguments_are_one_line(args: tuple[str, ...], message: str, tmp_path: Path) -> None:
    out = tmp_path / "runs"
    assert message in complaint(fadelab("run", *args, "--out", out))
    assert not out.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("command", [("run", LOSSY), ("demo",)])
def test_runs_without_rights_are_one_line(command: tuple[str, ...]) -> None:
    try:
        subprocess.run([sys.executable, "-c", ""], cwd=ROOT, check=True, user=NOBODY, group=NOBODY, extra_groups=[])
    except (PermissionError, subprocess.CalledProcessError):
        pytest.skip("other users cannot run this Python: the checkout is in a private folder")
    # pytest's own folders are its user's
    with tempfile.TemporaryDirectory() as anyones:
        Path(anyones).chmod(0o777)
        process = start(*command, "--out", f"{anyones}/runs", user=NOBODY, group=NOBODY, extra_groups=[])
        assert "need root: run with sudo or as root" in complaint(finish(process))
        assert list(Path(anyones).iterdir()) == []
    assert left_behind(process.pid) == []
