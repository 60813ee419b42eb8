"""The timeline that a run's folder keeps: it is the one that was made, and no stale one is ever read."""

import json
import math
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import testbed.api as fadelab
from testbed.errors import FadelabError
from testbed.exports import kept
from testbed.exports.source import make_timeline, timeline_of
from testbed.paths import root
from testbed.results.removal import check_removable
from testbed.source_files import digest_now
from testbed.sources import look
from tests.testbed.exports.test_export import MARKS, recorded

pytestmark = pytest.mark.slow

LOSSY = fadelab.root() / "scenarios" / "lossy-link.yaml"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    settings = {"workloads.0.duration_s": 1, "channel.per": 0.1}
    return fadelab.run(LOSSY, tier="model", settings=settings, out=tmp_path_factory.mktemp("runs")).folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """A run's folder without a timeline."""
    copy = tmp_path / made.name
    shutil.copytree(made, copy)
    return copy


def test_a_kept_timeline_is_the_one_that_was_made(folder: Path, tmp_path: Path) -> None:
    live = recorded(tmp_path / "live", annotations=MARKS)
    for each in (folder, live):
        first = timeline_of(each)
        found = kept.read(each, kept.digest_of(each))
        assert found is not None
        assert asdict(found) == asdict(first) == asdict(make_timeline(each))
        assert found.frames
    assert any(frame.samples is not None for frame in timeline_of(live).frames)


def test_the_second_reader_takes_what_the_first_one_kept(folder: Path) -> None:
    timeline_of(folder)
    # as if there were other packets: it is this file that is read
    digest = kept.digest_of(folder)
    kept.write(folder, digest, replace(make_timeline(folder), sent=[]))
    assert timeline_of(folder).sent == []
    check_removable(folder)


def change_scenario(folder: Path) -> None:
    path = folder / "scenario.yaml"
    path.write_text(path.read_text() + "# a remark\n")


def change_records(folder: Path) -> None:
    (folder / "tcp.parquet").unlink()


def damage(folder: Path) -> None:
    path = folder / kept.NAME
    octets = bytearray(path.read_bytes())
    octets[len(octets) // 2] ^= 0xFF
    path.write_bytes(octets)


def cut(folder: Path) -> None:
    path = folder / kept.NAME
    path.write_bytes(path.read_bytes()[:-100])


@pytest.mark.parametrize("change", [change_scenario, change_records, damage, cut])
def test_a_kept_timeline_of_other_files_is_not_read(change: Callable[[Path], None], folder: Path) -> None:
    digest = kept.digest_of(folder)
    timeline_of(folder)
    assert kept.read(folder, digest) is not None
    change(folder)
    assert kept.read(folder, kept.digest_of(folder)) is None
    # made anew, and kept
    assert asdict(timeline_of(folder)) == asdict(make_timeline(folder))
    assert kept.read(folder, kept.digest_of(folder)) is not None


def test_another_result_is_refused_though_a_timeline_was_kept(folder: Path) -> None:
    timeline_of(folder)
    path = folder / "summary.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "retransmissions": 12345}))
    with pytest.raises(FadelabError, match="another result"):
        timeline_of(folder)


def test_a_timeline_that_another_checkout_kept_is_not_believed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(kept, "_secret", lambda: b"theirs")
        kept.write(folder, kept.digest_of(folder), replace(make_timeline(folder), sent=[]))
    assert timeline_of(folder).sent


def test_a_timeline_beyond_the_limit_is_neither_kept_nor_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timeline_of(folder)
    digest = kept.digest_of(folder)
    monkeypatch.setattr(kept, "_MOST_BYTES", 1000)
    assert kept.read(folder, digest) is None
    (folder / kept.NAME).unlink()
    assert timeline_of(folder).sent
    assert not (folder / kept.NAME).exists()


def test_links_and_pipes_are_not_followed(folder: Path) -> None:
    (folder / "air-st.pcapng").symlink_to("/dev/zero")
    with pytest.raises(FadelabError, match=r"air-st\.pcapng: is no regular file"):
        timeline_of(folder)
    (folder / "air-st.pcapng").unlink()
    os.mkfifo(folder / "iq-up.sigmf-meta")
    with pytest.raises(FadelabError, match=r"iq-up\.sigmf-meta: is no regular file"):
        timeline_of(folder)


@pytest.mark.parametrize(
    ("kind", "column", "value", "complaint"),
    [
        ("tcp", "srtt_ms", math.nan, "its records have numbers that are infinite, or none"),
        ("link", "link", "sideways", "its records are of a link 'sideways', and there are up, down"),
    ],
)
def test_records_that_no_export_can_have(kind: str, column: str, value: object, complaint: str, folder: Path) -> None:
    table = pq.read_table(folder / f"{kind}.parquet")
    new = pa.array([value] * len(table), table.schema.field(column).type)
    pq.write_table(table.set_column(table.column_names.index(column), column, new), folder / f"{kind}.parquet")
    with pytest.raises(FadelabError, match=complaint):
        timeline_of(folder)


def test_the_digest_names_the_program(folder: Path) -> None:
    assert digest_now() == look(root()).digest
    timeline_of(folder)
    program = digest_now()
    # the same files read by another program
    other = kept.digest_of(folder, program="another")
    assert other != kept.digest_of(folder) == kept.digest_of(folder, program=program)
    assert kept.read(folder, other) is None


def test_a_folder_that_cannot_keep_it_is_read_all_the_same(folder: Path) -> None:
    (folder / kept.NAME).mkdir()
    assert timeline_of(folder).frames
    assert {path.name for path in folder.iterdir() if path.name.startswith(kept.NAME)} == {kept.NAME}


def test_the_same_run_keeps_the_same_octets(folder: Path, made: Path) -> None:
    timeline_of(folder)
    first = (folder / kept.NAME).read_bytes()
    (folder / kept.NAME).unlink()
    timeline_of(folder)
    assert (folder / kept.NAME).read_bytes() == first
