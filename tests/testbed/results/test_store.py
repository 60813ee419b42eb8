"""Run folders."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import FadelabError
from testbed.results.store import RunFolder
from tests.harness.scenarios import scenario, summary

ROOT = Path(__file__).parents[3]


def test_folders_are_unique_and_say_what_they_hold(tmp_path: Path) -> None:
    folders = [RunFolder.create(tmp_path / "deep" / "runs", scenario(seed=7)) for _ in range(5)]
    assert len({folder.path for folder in folders}) == 5
    for folder in folders:
        assert re.fullmatch(r"\d{6}-\d{6}-sample-emulated-slacp-cubic-s7(-\d)?", folder.name)
        assert folder.path.parent == tmp_path / "deep" / "runs"


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"tier": "model", "tcp": "user:newreno"}, "newreno"),
        ({"tcp": "user:newreno", "tcp_h2": "bbr"}, "user-newreno-and-bbr"),
        ({"tier": "model", "tcp": {"profile": "sack", "growth": {"name": "bbr3"}}}, "sack-changed"),
    ],
)
def test_folders_name_the_tcp_of_both_hosts(changes: dict[str, Any], word: str) -> None:
    made = scenario(**changes)
    assert made.stem == f"sample-{made.tier}-slacp-{word}-s1"


def test_manifest_names_command_seed_and_versions(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, scenario(seed=7))
    manifest = json.loads((folder.path / "manifest.json").read_text())
    assert manifest.keys() == {
        *("command", "scenario", "tier", "clock", "seed", "queue", "started"),
        *("versions", "sources", "cores", "cpus", "processor"),
    }
    assert manifest["queue"] == {"kind": "drop-tail"}
    assert (manifest["scenario"], manifest["tier"], manifest["seed"]) == ("sample", "emulated", 7)
    assert manifest["versions"].keys() >= {"fadelab", "python", "kernel", "zfec", "pydantic", "pyarrow", "pyroute2"}
    assert re.match(r"\d+\.\d+\.\d+", manifest["versions"]["fadelab"])
    started = datetime.fromisoformat(manifest["started"])
    assert abs((datetime.now(UTC) - started).total_seconds()) < 60

    epoch = datetime(2026, 1, 2, 3, 4, 5, 678_900, UTC)
    folder.began(epoch)
    began = json.loads((folder.path / "manifest.json").read_text())
    assert began == {**manifest, "epoch": "2026-01-02T03:04:05.678+00:00"}


def test_the_result_is_kept(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, scenario())
    folder.finish(summary())
    assert json.loads((folder.path / "summary.json").read_text()) == json.loads(json.dumps(summary().plain()))


def test_run_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FadelabError, match="cannot be made: Not a directory; choose another --out"):
        RunFolder.create(tmp_path / "file" / "runs", scenario())
