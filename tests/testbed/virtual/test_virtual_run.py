"""Live runs in virtual time: the same files to the byte, whatever the machine does beside them."""

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from common.compiled import PURE
from telemetry.views import PhyView
from testbed.cli import app
from testbed.errors import FadelabError
from testbed.results.summary import Summary
from testbed.run_hooks import RunHooks
from testbed.running import run_once
from testbed.scenario.file import validate
from tests.harness.live_runs import Capture, folder_of
from tests.harness.repeats import contents
from tests.harness.scenarios import raw_scenario, scenario, written
from tests.testbed.virtual.conftest import needs_kernel


class Views:
    """Keeps the views of a run that is watched."""

    watched = True

    def __init__(self) -> None:
        self.shown: list[PhyView] = []

    def show(self, view: PhyView) -> None:
        self.shown.append(view)


def virtual(runs: Path, **changes: object) -> Summary:
    return run_once(scenario(clock="virtual", **changes), runs, lambda progress: None)


@pytest.fixture
def twice(tmp_path: Path) -> Callable[..., Summary]:
    """Makes a run, and once more with a longer path: the same files to the byte."""

    def twice(between: Callable[[], None] = lambda: None, **changes: object) -> Summary:
        first = virtual(tmp_path / "a", **changes)
        between()
        second = virtual(tmp_path / "a-name-of-another-length", **changes)
        assert contents(folder_of(first)) == contents(folder_of(second))
        return first

    return twice


class TestInAMachine:
    pytestmark = needs_kernel

    @pytest.mark.parametrize("tcp", ["bbr", "user:modern"])
    def test_runs_of_one_seed_agree_to_the_byte_whatever_else_is_installed(
        self, twice: Callable[..., Summary], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tcp: str
    ) -> None:
        more = tmp_path / "more"
        more.mkdir()
        # modules that are there already, and objects for the collector of garbage to look at
        (more / "sitecustomize.py").write_text("import concurrent.futures\nkept = [[] for _ in range(100_000)]\n")

        def install() -> None:
            monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(more), os.environ.get("PYTHONPATH", "")]))

        assert twice(install, tcp=tcp, channel={"per": 0.05}, link={"scheme": "slacp"}).intact

    def test_runs_with_our_tcp_agree_whether_or_not_modules_are_compiled_already(
        self, twice: Callable[..., Summary], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        without = partial(monkeypatch.setenv, "PYTHONPYCACHEPREFIX", "/run/no-caches")
        assert twice(without, tcp="user:modern", channel={"per": 0.05}, link={"scheme": "slacp"}).intact

    def test_split_connections_agree_to_the_byte(self, twice: Callable[..., Summary]) -> None:
        summary = twice(link={"scheme": "split"})
        assert summary.split is not None
        assert summary.split.connections == 1

    def test_virtual_usrps_agree_to_the_byte(self, twice: Callable[..., Summary]) -> None:
        channel = {"rate_bps": 500_000, "snr_db": 15, "fading": "flat"}
        bulk = [{"kind": "bulk", "bytes": 30_000}]
        first = twice(tier="vusrp", channel=channel, radio={"rate_sps": 1_000_000}, workloads=bulk)
        assert (first.intact, first.late_events, first.link["up"].residual_losses) == (True, 0, 0)
        assert {"phy.parquet", "trace-up.parquet", "tcp.parquet"} <= contents(folder_of(first)).keys()

    def test_watched_run_shows_its_receivers(self, tmp_path: Path) -> None:
        views = Views()
        summary = run_once(
            scenario(
                clock="virtual",
                tier="vusrp",
                channel={"rate_bps": 500_000, "snr_db": 15},
                radio={"rate_sps": 1_000_000},
                workloads=[{"kind": "bulk", "bytes": 30_000}],
            ),
            tmp_path,
            lambda progress: None,
            lambda scenario, folder: RunHooks(view_sink=views),
        )
        assert summary.intact
        assert {view.link for view in views.shown} == {"up", "down"}
        assert any(view.symbols and view.modulation == "qpsk" for view in views.shown)

    def test_nothing_is_late_and_the_manifest_names_the_machine(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("FADELAB_PURE", raising=False)
        summary = virtual(tmp_path, seed=7)
        assert summary.events > 100
        assert summary.late_events == 0
        assert summary.max_late_ms < 0.1
        manifest = json.loads((folder_of(summary) / "manifest.json").read_text())
        assert manifest["clock"] == "virtual"
        assert manifest["machine"]["kind"] == "user-mode-linux"
        assert manifest["machine"]["seed"] == 7
        assert manifest["versions"]["kernel"].endswith("-fadelab")
        assert manifest["cores"] == PURE

    def test_fault_of_the_run_is_one_line(self, tmp_path: Path) -> None:
        with pytest.raises(FadelabError, match=r"^.*congestion control"):
            virtual(tmp_path, workloads=[{"kind": "bulk", "bytes": 1000, "congestion_control": "nosuch"}])


def test_usrps_have_no_virtual_clock(tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path / "sample.yaml", scenario())
    assert app.main(["run", str(path), "--tier", "usrp", "--clock", "virtual", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err.endswith("tier usrp has no virtual clock, only its wall one\n")


def test_model_is_virtual_already(tmp_path: Path, capsys: Capture) -> None:
    path = written(tmp_path / "sample.yaml", validate({**raw_scenario(), "tier": "model"}, "sample"))
    assert app.main(["run", str(path), "--clock", "virtual", "--out", str(tmp_path)]) == 0
    assert "tier model has no use for clock: it is always in virtual time\n" in capsys.readouterr().err


def test_missing_kernel_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FADELAB_ROOT", str(tmp_path))
    with pytest.raises(FadelabError, match=r"^the kernel of virtual time is not built: .* builds it$"):
        virtual(tmp_path)
