"""Files that are whole or not there."""

import os
import resource
from pathlib import Path

import pytest

from testbed.results.whole_files import make_folder, write_whole


def test_file_that_finds_no_room_leaves_the_older_one_and_no_part(tmp_path: Path) -> None:
    write_whole(tmp_path / "a.json", b"older")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            write_whole(tmp_path / "a.json", bytes(5000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a.json": b"older"}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a folder to another user")
def test_folders_that_root_makes_belong_to_the_owner_of_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout, elsewhere = tmp_path / "checkout", tmp_path / "elsewhere"
    checkout.mkdir()
    os.chown(checkout, 65534, 65534)
    monkeypatch.setenv("FADELAB_ROOT", str(checkout))
    for place, owner in ((checkout, 65534), (elsewhere, 0)):
        make_folder(place / "runs" / "a")
        assert [path.stat().st_uid for path in (place / "runs", place / "runs" / "a")] == [owner, owner]
        with pytest.raises(FileExistsError):
            make_folder(place / "runs" / "a")
