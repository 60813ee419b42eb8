"""Bundles that are made to harm who checks them: what may be in one, where it may lead, and how large it may be."""

import hashlib
import json
import os
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.campaigns.plan import is_inside
from testbed.reports import received
from testbed.reports.bundle import SUMS
from tests.harness.live_runs import Capture, refused
from tests.testbed.reports.forging import change_rows, check, zipped

pytestmark = pytest.mark.slow


@pytest.fixture
def never_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    def extract(*arguments: Any) -> None:
        pytest.fail("is unpacked")

    monkeypatch.setattr(zipfile.ZipFile, "extract", extract)


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
