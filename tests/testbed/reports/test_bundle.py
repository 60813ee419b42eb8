"""Bundles: the program that made the runs, metadata for a publication, and the commands that are printed."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from rocrate.rocrate import ROCrate

from testbed.campaigns.engine import run_campaign
from testbed.campaigns.file import CampaignError
from testbed.campaigns.folder import CampaignFolder
from testbed.cli import app
from testbed.paths import root
from testbed.reports.bundle import write_bundle
from testbed.reports.crate import Publication
from testbed.reports.numbers import read_campaign
from testbed.reports.report import write_report
from testbed.sources import digest_of_archive, sources
from tests.harness.campaigns import InProcess, campaign_file, edited_sources, opened, raw_campaign, result_files
from tests.harness.live_runs import Capture, refused

pytestmark = pytest.mark.slow

#: for a shell
PYTHON = shlex.quote(sys.executable)
ADA = "Ada Lovelace <0000-0001-2345-6789>"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a campaign that has ended."""
    folder: Path = tmp_path_factory.mktemp("campaign")
    with opened(folder / "out", campaign_file(folder)) as campaign:
        run_campaign(campaign, InProcess)
    return folder / "out"


@pytest.fixture
def copy(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "copy"))


def launcher(folder: Path) -> Path:
    """In the place of the launcher, which prepares a machine: this interpreter with the program in that folder."""
    program = folder / "fadelab"
    program.write_text(
        f'#!/bin/sh\nhere=$(dirname "$(readlink -f "$0")")\n'
        f'FADELAB_ROOT=$here PYTHONPATH=$here exec {PYTHON} -P -m testbed "$@"\n'
    )
    program.chmod(0o755)
    return program


def shell(command: str, cwd: Path, *, path: Path | None = None) -> str:
    """The output of a command that must succeed; `path` is a folder in PATH."""
    environment = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}"}
    done = subprocess.run(command, shell=True, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def metrics_of(runs: Path) -> list[float]:
    """The durations of the runs below a folder, by seed."""
    found = [json.loads(path.read_text()) for path in runs.glob("*/summary.json")]
    return [each["duration_s"] for each in sorted(found, key=lambda each: int(each["seed"]))]


# -- the commands of a report ----------------------------------------------------------------------------------


def test_commands_of_a_report_work_in_its_folder(copy: Path, tmp_path: Path) -> None:
    """As printed, but for AGAIN, which stands for a new folder."""
    write_report(read_campaign(copy), copy)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "fadelab").write_text(f'#!/bin/sh\nexec {PYTHON} -P -m testbed "$@"\n')
    (tmp_path / "bin" / "fadelab").chmod(0o755)
    text = (copy / "report.md").read_text()
    assert "The commands are for the campaign's folder, with the folder of fadelab in PATH." in text
    of_points = re.findall(r"fadelab run \S+ --repeat \d+ --out AGAIN", text)
    assert len(of_points) == 2
    for point, command in zip(("0-none", "1-slacp"), of_points, strict=True):
        shell(command.replace("AGAIN", f"{tmp_path}/{point}"), copy, path=tmp_path / "bin")
        own = [json.loads((copy / "runs" / f"{point}-s{seed}" / "summary.json").read_text()) for seed in (1, 2, 3)]
        assert metrics_of(tmp_path / point) == [each["duration_s"] for each in own]
    [whole] = re.findall(r"```sh\n(fadelab campaign .*)\n```", text)
    shell(whole.replace("AGAIN", f"{tmp_path}/again"), copy, path=tmp_path / "bin")
    written = {"report.md", "report.html"}
    before = {name: content for name, content in result_files(copy).items() if name not in written}
    assert result_files(tmp_path / "again") == {k: v for k, v in before.items() if not k.startswith("figures/")}


def test_plan_is_a_campaign_with_its_files(tmp_path: Path) -> None:
    """A campaign whose scenario names a trace is repeated from its folder, wherever that has been moved."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "rates.txt").write_text("1000\n2000\n")
    scenario = raw_campaign()["scenario"]
    scenario["channel"]["assignment"] = {"kind": "mahimahi", "path": "rates.txt"}
    file = campaign_file(tmp_path / "a", scenario=scenario, seeds={"count": 1})
    with opened(tmp_path / "a" / "out", file):
        pass
    (tmp_path / "a" / "out").rename(tmp_path / "moved")
    shutil.rmtree(tmp_path / "a")
    from testbed.campaigns.folder import planned

    plan, source, files = planned(tmp_path / "moved" / "plan.json")
    with CampaignFolder(tmp_path / "again", plan, source, files):
        pass
    left = {"lock", "index.jsonl"}
    for path in (tmp_path / "moved").rglob("*"):
        if path.is_file() and path.name not in left:
            again = tmp_path / "again" / path.relative_to(tmp_path / "moved")
            assert again.read_bytes() == path.read_bytes()
    assert len(plan.files) == 1


def test_files_of_a_repeated_campaign_are_those_of_its_plan(tmp_path: Path, capsys: Capture) -> None:
    """A trace that is missing or changed ends the command in one line, and nothing is written."""
    (tmp_path / "rates.txt").write_text("1000\n2000\n")
    scenario = raw_campaign()["scenario"]
    scenario["channel"]["assignment"] = {"kind": "mahimahi", "path": "rates.txt"}
    file = campaign_file(tmp_path, scenario=scenario, seeds={"count": 1})
    with opened(tmp_path / "out", file) as folder:
        [name] = folder.plan.files
    trace = tmp_path / "out" / name
    trace.write_text("1\n2\n")
    for copy in ("plan.json", "campaign.yaml"):
        complaint = refused(capsys, "campaign", tmp_path / "out" / copy, "--out", tmp_path / "again")
        assert f"{trace}: is not the file that plan.json names" in complaint
    # nor does the campaign itself go on with it
    assert "is not the file" in refused(capsys, "campaign", file, "--out", tmp_path / "out")
    trace.unlink()
    for copy in ("plan.json", "campaign.yaml"):
        complaint = refused(capsys, "campaign", tmp_path / "out" / copy, "--out", tmp_path / "again")
        assert f"{trace}: cannot be read: No such file or directory" in complaint
    assert not (tmp_path / "again").exists()


def test_command_of_a_bundle_without_its_program_works_where_it_is_printed_for(copy: Path, tmp_path: Path) -> None:
    bundle = write_bundle(read_campaign(copy), tmp_path / "b.zip", source=False)
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(tmp_path / "unpacked")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "fadelab").write_text(f'#!/bin/sh\nexec {PYTHON} -P -m testbed "$@"\n')
    (tmp_path / "bin" / "fadelab").chmod(0o755)
    readme = (tmp_path / "unpacked" / "small" / "README.txt").read_text()
    [checksums, verify] = re.findall(r"^    (.+)$", readme, re.MULTILINE)
    assert shell(checksums, tmp_path / "unpacked" / "small") == ""
    assert "in the folder above this one" in readme
    out = shell(verify, tmp_path / "unpacked", path=tmp_path / "bin")
    assert out.splitlines()[-1] == "all that was checked agrees"
    # the folder of the campaign alone is checked, too, and the command says of what it saw nothing
    assert "not checked: the folder above" in shell(verify, tmp_path / "unpacked" / "small", path=tmp_path / "bin")


def test_copy_of_a_campaign_file_repeats_the_campaign(tmp_path: Path, capsys: Capture) -> None:
    """The scenario that it names stayed where the original is; the plan beside the copy has it."""
    (tmp_path / "mine").mkdir()
    scenario = tmp_path / "mine" / "link.yaml"
    scenario.write_text(json.dumps(raw_campaign()["scenario"]))
    file = campaign_file(tmp_path / "mine" / "campaigns", scenario="../link.yaml", seeds={"count": 1})
    with opened(tmp_path / "out", file):
        pass
    copy = tmp_path / "out" / "campaign.yaml"
    assert copy.read_bytes() == file.read_bytes()
    plan = (tmp_path / "out" / "plan.json").read_bytes()
    # another scenario, at the place that the copy names, changes nothing
    (tmp_path / "link.yaml").write_text(scenario.read_text().replace("0.05", "0.5"))
    scenario.unlink()
    assert app.main(["campaign", str(copy), "--out", str(tmp_path / "again")]) == 0
    assert (tmp_path / "again" / "plan.json").read_bytes() == plan
    assert (tmp_path / "again" / "campaign.yaml").read_bytes() == file.read_bytes()
    # the copy of the copy, too
    assert app.main(["campaign", str(tmp_path / "again" / "campaign.yaml"), "--plan"]) == 0
    capsys.readouterr()
    # one that was changed is another campaign
    copy.write_text(copy.read_text().replace("small", "other"))
    complaint = refused(capsys, "campaign", copy, "--plan")
    assert f"{copy}: is not the campaign of {tmp_path}/out/plan.json beside it" in complaint


# -- metadata --------------------------------------------------------------------------------------------------


def test_bundle_is_an_ro_crate_that_can_be_published(copy: Path, tmp_path: Path) -> None:
    """Read back by ro-crate-py, as an archive of data would."""
    campaign = read_campaign(copy)
    publication = Publication((ADA, "Grace Hopper"), "CC-BY-4.0", "doi:10.5281/zenodo.123", "Zenodo")
    bundle = write_bundle(campaign, tmp_path / "b.zip", source=False, publication=publication)
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(tmp_path / "unpacked")
        names = set(archive.namelist()) - {"ro-crate-metadata.json"}
    crate = ROCrate(tmp_path / "unpacked")
    dataset = crate.root_dataset
    started = [json.loads(path.read_text())["started"] for path in copy.glob("runs/*/manifest.json")]
    assert dataset["identifier"] == dataset["cite-as"] == "https://doi.org/10.5281/zenodo.123"
    assert [(each.id, each["name"]) for each in dataset["author"]] == [
        ("https://orcid.org/0000-0001-2345-6789", "Ada Lovelace"),
        ("#grace-hopper", "Grace Hopper"),
    ]
    assert dataset["license"].id == "https://spdx.org/licenses/CC-BY-4.0"
    assert (dataset["publisher"], dataset["datePublished"]) == ("Zenodo", max(started)[:10])
    assert dataset["name"] == "fadelab campaign small"
    program = crate.dereference("#fadelab")
    assert program["identifier"] == [f"urn:sha256:{sources().digest}"]
    assert program["license"].id == "https://spdx.org/licenses/GPL-3.0-or-later"
    assert crate.dereference("#runs")["instrument"] is program
    listed = {each.id for each in crate.data_entities}
    assert listed == {name for name in names if not name.startswith("small/runs/")} | {"small/", "small/runs/"}
    for each in crate.data_entities:
        assert (tmp_path / "unpacked" / each.id).exists()


def test_without_other_words_authors_and_licence_are_those_of_the_program(copy: Path, tmp_path: Path) -> None:
    bundle = write_bundle(read_campaign(copy), tmp_path / "b.zip", source=False)
    with zipfile.ZipFile(bundle) as archive:
        graph = {each["@id"]: each for each in json.loads(archive.read("ro-crate-metadata.json"))["@graph"]}
    assert graph["./"]["author"] == [{"@id": "#the-fadelab-authors"}]
    assert graph["./"]["license"] == {"@id": "https://spdx.org/licenses/GPL-3.0-or-later"}
    assert graph["./"]["identifier"] == f"urn:sha256:{read_campaign(copy).plan.sha256}"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--author", "Ada <12>"), "--author 'Ada <12>': is neither NAME nor 'NAME <ORCID>'"),
        (("--author", " "), "--author ' ': is neither NAME nor"),
        (("--doi", "10.5"), "--doi 10.5: is no DOI, as in 10.5281/zenodo.1234567"),
    ],
)
def test_wrong_words_for_a_publication_are_one_line(
    words: tuple[str, ...], complaint: str, copy: Path, tmp_path: Path, capsys: Capture
) -> None:
    target = tmp_path / "b.zip"
    assert complaint in refused(capsys, "report", "bundle", copy, "--out", target, "--no-source", *words)
    assert not target.exists()


# -- the program that made the runs ----------------------------------------------------------------------------


def test_runs_without_one_known_program_are_bundled_without_source_alone(copy: Path, tmp_path: Path) -> None:
    def rewrite(change: Any) -> None:
        index = copy / "index.jsonl"
        rows = [json.loads(line) for line in index.read_text().splitlines()]
        index.write_text("".join(json.dumps(change(row) if "run" in row else row) + "\n" for row in rows))

    rewrite(lambda row: {**row, "sources": "1" * 64 if row["run"] == "0-none-s1" else row["sources"]})
    with pytest.raises(CampaignError, match="made by several sources of fadelab: make them again in one folder, or"):
        write_bundle(read_campaign(copy), tmp_path / "b.zip")
    rewrite(lambda row: {**row, "sources": "1" * 64})
    with pytest.raises(CampaignError, match=r"were made by sources 1{12}, and sources\.json leads to"):
        write_bundle(read_campaign(copy), tmp_path / "b.zip")
    rewrite(lambda row: {**row, "sources": ""})
    with pytest.raises(CampaignError, match="by a fadelab that did not record its sources: make them again"):
        write_bundle(read_campaign(copy), tmp_path / "b.zip")
    assert not (tmp_path / "b.zip").exists()
    assert write_bundle(read_campaign(copy), tmp_path / "b.zip", source=False).exists()


def test_a_commit_that_is_not_here_is_one_line(copy: Path, tmp_path: Path) -> None:
    about = json.loads((copy / "sources.json").read_text())
    (copy / "sources.json").write_text(json.dumps({**about, "commit": "0" * 40}))
    with pytest.raises(CampaignError, match=r"cannot be had .*: bundle it in a checkout that has that commit, or use"):
        write_bundle(read_campaign(copy), tmp_path / "b.zip")


needs_git = pytest.mark.skipif(not (root() / ".git").exists(), reason="the program's source comes from git")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout of this commit, with the sources as they are here."""
    made = tmp_path / "checkout"
    subprocess.run(["git", "clone", "-q", "--shared", str(root()), str(made)], check=True)
    for name in sources().changed or ():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root() / name, made / name)
    for name in sources().removed:
        (made / name).unlink()
    launcher(made)
    return made


def git(folder: Path, *words: str) -> str:
    names = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    return subprocess.run(
        ["git", *names, *words], cwd=folder, capture_output=True, text=True, check=True
    ).stdout.strip()


@needs_git
def test_bundle_has_the_plugin_and_the_edit_that_made_the_runs_whatever_the_checkout_became(
    checkout: Path, tmp_path: Path
) -> None:
    """Runs of a dirty checkout; then the checkout moves on, and a stranger follows the README of the bundle."""
    plugin = (checkout / "channel/errors/bernoulli.py").read_text().replace("Bernoulli", "Mine")
    (checkout / "channel/errors/mine.py").write_text(plugin.replace('"bernoulli"', '"mine"'))
    scenario = raw_campaign()["scenario"]
    scenario["channel"] |= {"errors": {"model": "mine", "per": 0.1}}
    del scenario["channel"]["per"]
    file = campaign_file(tmp_path, scenario=scenario, seeds={"count": 1})
    shell(f"{checkout}/fadelab campaign {file} --out {tmp_path}/out --workers 1", tmp_path)
    rows = read_campaign(tmp_path / "out").rows
    [digest] = {row.sources for row in rows}
    assert all(row.fadelab.endswith(".dirty") for row in rows)
    # the checkout loses the plugin, and has another report in another commit
    (checkout / "channel/errors/mine.py").unlink()
    report = checkout / "testbed/reports/report.py"
    report.write_text(report.read_text().replace("Origin of every number", "Where numbers come from"))
    git(checkout, "commit", "-q", "-a", "-m", "two")
    shell(f"{checkout}/fadelab report bundle {tmp_path}/out --out {tmp_path}/b.zip", tmp_path)
    unpacked = tmp_path / "unpacked"
    with zipfile.ZipFile(tmp_path / "b.zip") as archive:
        assert digest_of_archive(archive.read("source.tar.gz")) == digest
        archive.extractall(unpacked)
    assert "Origin of every number" in (unpacked / "small" / "report.md").read_text()
    assert {"LICENSE", "requirements.lock", "requirements-full.lock"} < {path.name for path in unpacked.iterdir()}
    readme = (unpacked / "small" / "README.txt").read_text()
    [checksums, unpack, verify] = re.findall(r"^    (.+)$", readme, re.MULTILINE)
    assert shell(checksums, unpacked / "small") == ""
    shell(unpack, unpacked)
    with tarfile.open(unpacked / "source.tar.gz") as archive:
        assert archive.getmember("fadelab/fadelab").mode & 0o100
    launcher(unpacked / "fadelab")
    out = shell(verify, unpacked)
    assert "source.tar.gz: its sources compared with those that made the runs" in out
    assert re.search(r"checked by fadelab 0\.1\.0, the same", out)
    assert out.splitlines()[-1] == "all that was checked agrees"
    # another program in its place
    shutil.copy(checkout / "channel/errors/none.py", unpacked / "fadelab/channel/errors/none2.py")
    shell("tar czf source.tar.gz fadelab", unpacked)
    (unpacked / "fadelab/channel/errors/none2.py").unlink()
    done = subprocess.run(verify, shell=True, cwd=unpacked, capture_output=True, text=True)
    assert done.returncode == 2
    assert re.search(
        rf"the first: source.tar.gz: has sources \w+, and the runs were made by {digest[:12]}", done.stderr
    )


@needs_git
def test_program_in_a_bundle_is_that_of_the_runs(copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundles = []
    for name in ("a.zip", "b.zip"):
        bundles.append(write_bundle(read_campaign(copy), tmp_path / name).read_bytes())
        # what this process has by now is of no importance, as long as nothing is edited
        monkeypatch.setattr("testbed.reports.bundle._report", lambda campaign, packed: None)
        edited_sources(monkeypatch)
    assert bundles[0] == bundles[1]
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        [made_by] = {row.sources for row in read_campaign(copy).rows}
        assert digest_of_archive(archive.read("source.tar.gz")) == made_by
        assert archive.read("requirements.lock") == (root() / "requirements.lock").read_bytes()
