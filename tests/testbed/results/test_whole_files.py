"""Files that are whole or not there."""

import resource
from pathlib import Path

import pytest

from testbed.results.whole_files import write_whole


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
