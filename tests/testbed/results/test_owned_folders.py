"""Folders that belong to the owner of the checkout."""

import os
from pathlib import Path

import pytest

from testbed.results.owned_folders import make_folder


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
