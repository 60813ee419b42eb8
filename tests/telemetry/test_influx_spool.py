"""Batches on disk: their order, other sinks and processes beside, and what a kill leaves."""

import gzip
import os
from pathlib import Path

import pytest

from telemetry.influx.spool import Batch, Spool
from tests.harness.processes import files_of_at_most, saying

SPOOLER = """
import gzip, sys
from pathlib import Path
from telemetry.influx.spool import Batch, Spool
spool = Spool(Path(sys.argv[1]))
for number in range(int(sys.argv[2])):
    spool.append(Batch(gzip.compress(b"theirs %d" % number), number + 1))
print("ready", flush=True)
sys.stdin.read()
"""


def batch(text: str, points: int = 1) -> Batch:
    return Batch(gzip.compress(text.encode(), mtime=0), points)


def texts(spool: Spool) -> list[str]:
    """Take everything out."""
    found = []
    while first := spool.first():
        found.append(gzip.decompress(first.body).decode())
        spool.pop()
    return found


def test_first_in_first_out(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    for n in range(12):
        spool.append(batch(f"batch {n}", points=n))
    assert spool.points == sum(range(12))
    assert spool.first() == spool.first() == batch("batch 0", points=0)
    assert texts(spool) == [f"batch {n}" for n in range(12)]
    assert (spool.points, spool.first()) == (0, None)
    spool.append(batch("one more"))
    assert texts(spool) == ["one more"]


def test_nothing_is_made_before_it_is_needed_nor_left_behind(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "a" / "spool")
    spool.adopt()
    assert (spool.first(), spool.points) == (None, 0)
    spool.close()
    assert list(tmp_path.iterdir()) == []
    spool.append(batch("one"))
    spool.pop()
    spool.close()
    assert list(spool.folder.iterdir()) == []


def test_what_was_left_comes_first_and_in_order(tmp_path: Path) -> None:
    for name in ("old", "newer"):
        spool = Spool(tmp_path)
        for n in range(11):
            spool.append(batch(f"{name} {n}", points=2))
        spool.close()
    spool = Spool(tmp_path)
    spool.append(batch("own"))
    spool.adopt()
    assert spool.points == 2 * 22 + 1
    assert texts(spool) == [*(f"old {n}" for n in range(11)), *(f"newer {n}" for n in range(11)), "own"]
    spool.close()
    assert list(tmp_path.iterdir()) == []


def test_sinks_of_one_process_do_not_take_from_each_other(tmp_path: Path) -> None:
    one, other = Spool(tmp_path), Spool(tmp_path)
    one.append(batch("one"))
    other.append(batch("other"))
    other.adopt()
    one.adopt()
    assert (texts(one), texts(other)) == (["one"], ["other"])


def test_a_killed_process_leaves_its_batches_to_the_next(tmp_path: Path) -> None:
    with saying(SPOOLER, tmp_path, "3") as (_, said):
        assert said == "ready"
        spool = Spool(tmp_path)
        spool.adopt()
        assert spool.points == 0, "it lives, and what is in its lane is its own"
    spool.adopt()
    assert spool.points == 1 + 2 + 3
    assert texts(spool) == ["theirs 0", "theirs 1", "theirs 2"]


@pytest.mark.parametrize("damage", ["cut short", "emptied", "changed", "no gzip"])
def test_a_damaged_batch_is_set_aside(tmp_path: Path, damage: str) -> None:
    spool = Spool(tmp_path)
    for n in range(3):
        spool.append(batch(f"batch {n}", points=10))
    (path,) = tmp_path.glob("*/00000002-10.gz")
    whole = path.read_bytes()
    damaged = {
        "cut short": whole[:-5],
        "emptied": b"",
        "changed": whole[:-6] + bytes([whole[-6] ^ 1]) + whole[-5:],
        "no gzip": b"x" * len(whole),
    }[damage]
    path.write_bytes(damaged)
    assert texts(spool) == ["batch 0", "batch 2"]
    assert spool.points == 0
    (torn,) = (tmp_path / "torn").iterdir()
    assert torn.name.endswith("-00000002-10.gz")
    assert torn.read_bytes() == damaged
    assert spool.trouble == f"{path}: damaged, not sent; it is in {tmp_path / 'torn'} now"


def test_incomplete_batch_of_a_killed_process_is_set_aside(tmp_path: Path) -> None:
    lane = tmp_path / "1-1"
    lane.mkdir()
    (lane / "00000001-10.part").write_bytes(b"half")
    (lane / "00000002-5.gz").write_bytes(gzip.compress(b"whole"))
    spool = Spool(tmp_path)
    spool.adopt()
    assert (spool.points, texts(spool)) == (5, ["whole"])
    assert [path.name for path in (tmp_path / "torn").iterdir()] == ["1-1-00000001-10.part"]
    assert not lane.exists()


def test_a_batch_that_cannot_be_read_holds_nothing_up(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    for n in range(2):
        spool.append(batch(f"batch {n}"))
    (path,) = tmp_path.glob("*/00000001-1.gz")
    path.unlink()
    path.mkdir()
    assert texts(spool) == ["batch 1"]
    assert spool.trouble == f"{path}: Is a directory; it stays there"


def test_refused_batches_are_kept_with_the_reason(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.reject(batch("m v=1\n", points=4), "it said no")
    (path,) = (tmp_path / "rejected").iterdir()
    assert path.name.endswith("-4.gz")
    # a comment in line protocol, so the file can be sent as it is
    assert gzip.decompress(path.read_bytes()) == b"# it said no\nm v=1\n"
    spool.adopt()
    assert spool.points == 0


def test_a_place_that_takes_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    spool = Spool(tmp_path / "file" / "spool")
    spool.adopt()
    with pytest.raises(NotADirectoryError):
        spool.append(batch("one"))
    with pytest.raises(NotADirectoryError):
        spool.reject(batch("one"), "why")
    assert spool.points == 0


def test_a_full_disk_leaves_no_half_batch(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.append(batch("one"))
    with files_of_at_most(4096), pytest.raises(OSError, match="File too large"):
        spool.append(Batch(os.urandom(5000), 7))
    assert spool.points == 1
    spool.append(batch("two"))
    assert [path.name for path in sorted(tmp_path.glob("*/*"))] == ["00000001-1.gz", "00000002-1.gz"]
    assert texts(spool) == ["one", "two"]
