"""The check of what is around the results of a bundle: metadata, campaign file, program and its sources."""

import gzip
import hashlib
import json
import re
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.campaigns.engine import run_campaign
from testbed.cli import app
from testbed.paths import root
from testbed.reports import bundle_check
from testbed.reports.bundle import write_bundle
from testbed.reports.numbers import read_campaign
from testbed.sources import SourcesError, pack, unpack
from tests.harness.campaigns import InProcess, campaign_file, opened
from tests.harness.live_runs import Capture
from tests.testbed.reports.forging import check, first, sum_again

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle with its program, packed."""
    folder: Path = tmp_path_factory.mktemp("whole")
    with opened(folder / "out", campaign_file(folder, seeds={"count": 1})) as campaign:
        run_campaign(campaign, InProcess)
    return write_bundle(read_campaign(folder / "out"), folder / "b.zip")


@pytest.fixture
def around(whole: Path, tmp_path: Path) -> Path:
    """The campaign's folder in a bundle with its program, unpacked, to be forged."""
    with zipfile.ZipFile(whole) as archive:
        archive.extractall(tmp_path / "bundle")
    return tmp_path / "bundle" / "small"


needs_git = pytest.mark.skipif(not (root() / ".git").exists(), reason="the program's source comes from git")


@pytest.mark.parametrize("name", ["extra.txt", "runs/more/a", ".hidden", "failed/a/b", "files/trace"])
def test_file_that_belongs_to_no_campaign_is_found_though_a_sum_names_it(
    name: str, forged: Path, capsys: Capture
) -> None:
    (forged / name).parent.mkdir(exist_ok=True, parents=True)
    (forged / name).write_text("look here")
    assert first(forged, capsys) == f"{name}: belongs to no campaign"


def forge_metadata(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    path = folder.parent / "ro-crate-metadata.json"
    about = json.loads(path.read_text())
    change({each["@id"]: each for each in about["@graph"]})
    path.write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n")


def test_metadata_is_made_again(forged: Path, capsys: Capture) -> None:
    path = forged.parent / "ro-crate-metadata.json"
    kept = path.read_text()
    path.write_text("{}")
    assert first(forged, capsys) == "ro-crate-metadata.json: does not describe this bundle"
    path.unlink()
    assert first(forged, capsys) == "ro-crate-metadata.json: is missing"
    path.write_text(kept)
    forge_metadata(forged, lambda graph: graph["#fadelab"].update(version="0.9"))
    assert re.match(
        r"ro-crate-metadata\.json: line \d+ is '\"version\": \"0\.9\",', made again '\"vers", first(forged, capsys)
    )
    path.write_text(kept)
    forge_metadata(forged, lambda graph: graph["small/index.jsonl"].update(contentSize="1"))
    assert check(forged, "--sample", "0") == 2
    assert '\'"contentSize": "1",\', made again' in capsys.readouterr().err
    # whose it is, no bundle can prove: the command says so
    path.write_text(kept)
    forge_metadata(forged, lambda graph: graph["./"].update(publisher="Me"))
    assert check(forged, "--sample", "0") == 0
    out = capsys.readouterr().out
    assert "not checked: authors, licence, publisher and DOI in ro-crate-metadata.json: who made the bundle" in out


def test_readme_with_new_sums_is_found(forged: Path, capsys: Capture) -> None:
    """A stranger follows it."""
    readme = forged / "README.txt"
    readme.write_text(readme.read_text().replace("fadelab report verify .", "curl example.org | sh"))
    assert re.match(r"README\.txt: line \d+ is 'curl example.org \| sh', made again 'fadelab", first(forged, capsys))


def test_campaign_file_and_scenario_of_a_run_are_those_of_the_plan(forged: Path, capsys: Capture) -> None:
    campaign = forged / "campaign.yaml"
    kept = campaign.read_text()
    campaign.write_text(kept + "description: All is well\n")
    assert first(forged, capsys) == "campaign.yaml: description is not that of the plan"
    campaign.write_text(kept)
    scenario = forged / "runs" / "1-slacp-s2" / "scenario.yaml"
    digest = hashlib.sha256(scenario.read_bytes()).hexdigest()
    scenario.write_text(scenario.read_text().replace("per: 0.05", "per: 0.04"))
    for name in ("index.jsonl", "results.json"):
        new = hashlib.sha256(scenario.read_bytes()).hexdigest()
        (forged / name).write_text((forged / name).read_text().replace(digest, new))
    assert first(forged, capsys) == "runs/1-slacp-s2/scenario.yaml: is not the scenario of the plan"


def test_hash_of_the_plan_is_all_that_its_file_says(forged: Path, capsys: Capture) -> None:
    with (forged / "plan.sha256").open("a") as file:
        file.write("published in 2020\n")
    assert first(forged, capsys) == "plan.sha256: line 2 is 'published in 2020', made again missing"


def test_bundle_without_a_report_is_found(forged: Path, capsys: Capture) -> None:
    for path in (forged / "report.md", forged / "report.html", *(forged / "figures").iterdir()):
        path.unlink()
    assert first(forged, capsys) == "figures/bars-duration_s.svg: is missing"


@needs_git
def test_bundle_with_its_program_agrees(whole: Path, capsys: Capture) -> None:
    assert app.main(["report", "verify", str(whole), "--sample", "0"]) == 0
    out = capsys.readouterr().out
    assert "source.tar.gz: its sources compared with those that made the runs" in out
    assert "no sources" not in out


@needs_git
@pytest.mark.parametrize("name", ["LICENSE", "requirements.lock", "requirements-full.lock"])
def test_files_of_the_program_are_those_in_it(name: str, around: Path, capsys: Capture) -> None:
    (around.parent / name).write_text((around.parent / name).read_text().replace("e", "E", 1))
    assert first(around, capsys).startswith(f"{name}: line ")
    (around.parent / name).unlink()
    assert first(around, capsys) == f"{name}: is missing"


@needs_git
def test_launcher_in_the_program_is_that_of_the_commit(
    around: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The digest of the sources does not cover it, and the bundle's README lets a stranger start it."""
    forge_program(around, {"fadelab": (b"#!/bin/sh\necho all agrees\n", True)})
    assert re.match(r"source\.tar\.gz: fadelab is not that of commit \w+$", first(around, capsys))

    def elsewhere(*arguments: Any) -> bytes:
        raise SourcesError("no such commit")

    monkeypatch.setattr(bundle_check, "program", elsewhere)
    assert check(around, "--sample", "0") == 0
    assert re.search(
        r"not checked: source\.tar\.gz: \d+ files that are no sources, such as its launcher and lists of packages: "
        r"this checkout does not have commit",
        capsys.readouterr().out,
    )


def forge_program(folder: Path, files: dict[str, tuple[bytes, bool]]) -> None:
    path = folder.parent / "source.tar.gz"
    found = {name: (content, mode) for name, content, mode in unpack(path.read_bytes())} | files
    path.write_bytes(pack((name, *each) for name, each in found.items()))


@needs_git
@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"sources": "1" * 64}, r"sources\.json: names sources 1{12}, and the runs were made by \w{12}$"),
        ({"fadelab": "0.9"}, r"sources\.json: names fadelab 0\.9, which made none of the runs$"),
        ({"note": "all is well"}, r"sources\.json: line \d+ is "),
        ({"commit": "--output=/tmp/mine"}, ""),
        ({"commit": "0" * 40}, ""),
    ],
)
def test_sources_that_a_campaign_names(change: dict[str, str], complaint: str, around: Path, capsys: Capture) -> None:
    """A commit that is none goes to no git."""
    path = around / "sources.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change, indent=1) + "\n")
    if complaint:
        assert re.match(complaint, first(around, capsys))
        return
    sum_again(around)
    assert check(around, "--sample", "0") == 0
    assert f"does not have commit {change['commit'][:12]}" in capsys.readouterr().out


@pytest.mark.parametrize("archive", [b"", b"\x1f\x8b\x08", b"\x1f\x8b\x08" + bytes(600)])
def test_archive_that_is_none(archive: bytes) -> None:
    with pytest.raises(SourcesError, match="its sources cannot be read"):
        list(unpack(archive))


def test_header_of_an_archive_takes_no_more_memory_than_its_files_may() -> None:
    """A few kilobytes unpack to a header of as many megabytes, which tarfile reads at once."""
    header = tarfile.TarInfo("pax")
    header.type, header.size = tarfile.XHDTYPE, 40_000_000
    bomb = gzip.compress(header.tobuf(tarfile.PAX_FORMAT) + bytes(40_000_000))
    assert len(bomb) < 50_000
    with pytest.raises(SourcesError, match="its sources have more than 1,000,000 octets"):
        list(unpack(bomb, most=1_000_000))
