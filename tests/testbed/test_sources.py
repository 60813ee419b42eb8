"""The sources of a checkout, and its version."""

import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

import testbed.sources
from testbed.paths import root
from testbed.source_files import digest_of
from testbed.sources import (
    SourcesError,
    digest_of_archive,
    look,
    pack,
    program,
    require_unchanged,
    sources,
    unpack,
)


def git(folder: Path, *words: str) -> str:
    names = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    done = subprocess.run(["git", *names, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with one commit."""
    made = tmp_path / "checkout"
    for name in ("channel/errors/burst.py", "channel/README.md", "flowgraphs/native/tests/a.cpp", "tests/test_a.py"):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(f"{name}\n")
    (made / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    git(made, "init", "-q")
    git(made, "add", ".")
    git(made, "commit", "-q", "-m", "one")
    return made


def test_version_names_the_commit_of_every_kind_of_checkout(checkout: Path, tmp_path: Path) -> None:
    expected = f"1.2.3+{git(checkout, 'rev-parse', 'HEAD')[:12]}"
    assert look(checkout).version == expected
    git(checkout, "pack-refs", "--all")
    assert look(checkout).version == expected
    tree = tmp_path / "tree"
    git(checkout, "worktree", "add", "-q", "-b", "side", str(tree))
    assert look(tree).version == expected
    git(tree, "checkout", "-q", "--detach")
    assert look(tree).version == expected
    (checkout / ".git").rename(tmp_path / "away")
    assert look(checkout).version == "1.2.3"
    assert look(checkout).digest == digest_of(look(checkout).files)


def _edit(checkout: Path) -> None:
    (checkout / "channel/errors/burst.py").write_text("edited\n")


def _stage(checkout: Path) -> None:
    _edit(checkout)
    git(checkout, "add", ".")


def _hide(checkout: Path) -> None:
    git(checkout, "update-index", "--assume-unchanged", "channel/errors/burst.py")
    _edit(checkout)


def _plug(checkout: Path) -> None:
    (checkout / "channel/errors/mine.py").write_text("new\n")


def _ignore(checkout: Path) -> None:
    (checkout / ".git/info/exclude").write_text("mine.py\n")
    _plug(checkout)


def _remove(checkout: Path) -> None:
    (checkout / "channel/errors/burst.py").unlink()


@pytest.mark.parametrize("change", [_edit, _stage, _hide, _plug, _ignore, _remove])
def test_edit_plugin_and_removal_change_the_digest_and_mark_the_version(
    change: Callable[[Path], None], checkout: Path
) -> None:
    before = look(checkout)
    change(checkout)
    after = look(checkout)
    assert after.digest != before.digest
    assert after.version == f"{before.version}.dirty"


def test_tests_documents_and_caches_are_no_sources(checkout: Path) -> None:
    before = look(checkout)
    assert list(before.files) == ["channel/errors/burst.py"]
    for name in ("channel/README.md", "flowgraphs/native/tests/a.cpp", "tests/test_a.py", "channel/.burst.py.swp"):
        (checkout / name).write_text("edited\n")
    (checkout / "channel/__pycache__").mkdir()
    (checkout / "channel/__pycache__/burst.pyc").write_text("code")
    assert look(checkout) == before


def test_digest_is_of_the_content_alone(checkout: Path) -> None:
    before = look(checkout)
    _edit(checkout)
    (checkout / "channel/errors/burst.py").write_text("channel/errors/burst.py\n")
    assert look(checkout) == before
    (checkout / "channel/errors/burst.py").rename(checkout / "channel/burst.py")
    assert look(checkout).digest != before.digest


def test_edit_while_the_program_runs_is_refused(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FADELAB_ROOT", str(checkout))
    now = 100.0
    monkeypatch.setattr(testbed.sources, "monotonic", lambda: now)
    began = sources()
    (checkout / "channel/errors/burst.py").touch()
    now += 2
    assert require_unchanged() == sources() == began
    _plug(checkout)
    now += 0.5
    assert require_unchanged() == began
    now += 1
    with pytest.raises(SourcesError, match="sources of fadelab have changed while it ran: start it again"):
        require_unchanged()
    assert sources() == began


def test_program_is_the_commit_with_the_sources_that_differed(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FADELAB_ROOT", str(checkout))
    clean = look(checkout)
    assert clean.differing == b""
    assert digest_of_archive(program(clean.commit, b"", ())) == clean.digest
    _edit(checkout)
    _plug(checkout)
    (checkout / "channel/more.py").write_text("more\n")
    dirty = look(checkout)
    kept = dirty.differing
    assert [name for name, _, _ in unpack(kept)] == [
        "channel/errors/burst.py",
        "channel/errors/mine.py",
        "channel/more.py",
    ]
    git(checkout, "stash", "-q", "-u")
    assert look(checkout).digest == clean.digest
    made = program(dirty.commit, kept, dirty.removed)
    assert digest_of_archive(made) == dirty.digest
    assert {"pyproject.toml", "tests/test_a.py"} < {name for name, _, _ in unpack(made)}
    assert program(dirty.commit, kept, dirty.removed) == made
    _remove(checkout)
    bare = look(checkout)
    assert digest_of_archive(program(bare.commit, bare.differing, bare.removed)) == bare.digest


def test_program_of_a_folder_without_git_is_kept_whole(checkout: Path, tmp_path: Path) -> None:
    (checkout / ".git").rename(tmp_path / "away")
    found = look(checkout)
    assert {name for name, _, _ in unpack(found.differing)} == {"channel/errors/burst.py", "pyproject.toml"}
    assert digest_of_archive(program("", found.differing, ())) == found.digest


def test_archive_beyond_its_limit_is_refused() -> None:
    archive = pack([("channel/a.py", bytes(10_000_000), False)])
    with pytest.raises(SourcesError, match="more than 1,000,000 octets"):
        list(unpack(archive, most=1_000_000))
    with pytest.raises(SourcesError, match="cannot be read"):
        list(unpack(archive[:-20]))


def tar(*entries: tuple[str, bytes | str]) -> bytes:
    """A tar.gz of files by content, and links by target."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, content in entries:
            entry = tarfile.TarInfo(name)
            if isinstance(content, str):
                entry.type, entry.linkname = tarfile.SYMTYPE, content
                archive.addfile(entry)
            else:
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


@pytest.mark.parametrize(
    "entries",
    [
        [("fadelab/channel/a.py", b"evil"), ("fadelab/channel/a.py", b"good")],
        [("fadelab/channel/a.py", b"evil"), ("channel/a.py", b"good")],
        [("fadelab/channel/a.py", b"good"), ("fadelab/tests/../channel/a.py", b"evil")],
        [("fadelab/channel/a.py", b"good"), ("fadelab//channel/a.py", b"evil")],
        [("fadelab/channel/a.py", b"good"), ("fadelab/channel", "/tmp")],
        [("fadelab", b"evil")],
    ],
)
def test_archive_from_which_tar_unpacks_other_files_is_refused(entries: list[tuple[str, bytes | str]]) -> None:
    """The digest would be of good sources, and the program another one."""
    assert [name for name, _, _ in unpack(tar(("fadelab/channel/a.py", b"good")))] == ["channel/a.py"]
    with pytest.raises(SourcesError, match="is no file of a program, or is there twice"):
        list(unpack(tar(*entries)))


def test_another_process_of_this_checkout_has_the_same_sources_in_any_form_of_the_cores() -> None:
    words = "from testbed.sources import sources; print(sources().digest)"
    found = [
        subprocess.run(
            [sys.executable, "-c", words], env={**os.environ, "FADELAB_PURE": pure}, cwd=root(), text=True, stdout=-1
        ).stdout.strip()
        for pure in ("", "1")
    ]
    assert found == [look(root()).digest] * 2
