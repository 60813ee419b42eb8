"""The version of a checkout."""

import subprocess
from pathlib import Path

import pytest

from testbed.paths import fadelab_version


def git(folder: Path, *words: str) -> str:
    names = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    done = subprocess.run(["git", *names, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_version_names_the_commit_of_every_kind_of_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout, tree = tmp_path / "checkout", tmp_path / "tree"
    checkout.mkdir()
    (checkout / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    monkeypatch.setenv("FADELAB_ROOT", str(checkout))
    assert fadelab_version() == "1.2.3"
    git(checkout, "init", "-q")
    git(checkout, "add", ".")
    git(checkout, "commit", "-q", "-m", "one")
    expected = f"1.2.3+{git(checkout, 'rev-parse', 'HEAD')[:12]}"
    assert fadelab_version() == expected
    git(checkout, "pack-refs", "--all")
    assert fadelab_version() == expected
    git(checkout, "worktree", "add", "-q", "-b", "side", str(tree))
    monkeypatch.setenv("FADELAB_ROOT", str(tree))
    assert fadelab_version() == expected
    git(tree, "checkout", "-q", "--detach")
    assert fadelab_version() == expected
