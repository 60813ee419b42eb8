"""The removal of runs: whole or not at all."""

import errno
import fcntl
import shutil
from pathlib import Path

import pytest

from testbed.errors import FadelabError
from testbed.results.removal import going_on, remove
from testbed.results.store import RunFolder
from tests.harness.scenarios import scenario


def made(root: Path, count: int) -> list[Path]:
    return [RunFolder.create(root, scenario(seed=seed)).path for seed in range(count)]


def test_only_the_named_runs_are_removed(tmp_path: Path) -> None:
    first, second, third = made(tmp_path, 3)
    remove([first, third])
    assert [*tmp_path.iterdir()] == [second]


def test_a_run_that_goes_on_stays_and_so_do_all_others(tmp_path: Path) -> None:
    first, second = made(tmp_path, 2)
    with going_on(second), going_on(second), pytest.raises(FadelabError, match="this run goes on"):
        remove([first, second])
    assert {*tmp_path.iterdir()} == {first, second}
    remove([first, second])
    assert not [*tmp_path.iterdir()]


def test_a_file_system_without_locks_lets_runs_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(fd: int, kind: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    [folder] = made(tmp_path, 1)
    monkeypatch.setattr(fcntl, "flock", refused)
    with going_on(folder):
        assert folder.exists()
    remove([folder])
    assert not folder.exists()


@pytest.mark.parametrize("entry", ["notes.txt", "figures/"])
def test_a_folder_with_a_persons_entry_stays(entry: str, tmp_path: Path) -> None:
    first, second = made(tmp_path, 2)
    mine = second / entry
    mine.mkdir() if entry.endswith("/") else mine.write_text("seen")
    with pytest.raises(FadelabError, match=r"no run made '(notes.txt|figures)' in it"):
        remove([first, second])
    assert {*tmp_path.iterdir()} == {first, second}
    assert mine.exists()


def test_a_killed_removal_hides_its_run_and_the_next_one_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = made(tmp_path, 3)

    def killed(path: Path, ignore_errors: bool) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            remove([first])
    assert {path.name[0] for path in tmp_path.iterdir()} == {".", "2"}
    remove([second])
    assert [*tmp_path.iterdir()] == [third]
