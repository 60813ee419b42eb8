"""The kernel of machines in virtual time: its stamp, and refusals before a build."""

import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from testbed.errors import FadelabError
from testbed.virtual import kernel
from tests.testbed.virtual.conftest import stamped


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout without a kernel, on a machine that has all packages."""
    archive = tmp_path / "linux.tar.xz"
    archive.touch()
    monkeypatch.setattr(kernel, "_ARCHIVE", archive)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setenv("FADELAB_ROOT", str(tmp_path))
    return tmp_path


def test_kernel_of_todays_options_counts_as_built(checkout: Path) -> None:
    assert kernel.built() is None
    made = stamped(checkout)
    assert kernel.built() == made
    assert kernel.build() == made


@pytest.mark.parametrize(
    "stamp", [{"version": "1", "configuration": "other options"}, {"version": "1"}, [], "no JSON"], ids=str
)
def test_kernel_of_other_options_is_built_again(checkout: Path, stamp: object) -> None:
    stamped(checkout)
    (checkout / ".build" / "virtual" / "stamp.json").write_text(stamp if isinstance(stamp, str) else json.dumps(stamp))
    assert kernel.built() is None


def test_missing_sources_name_their_packages(checkout: Path) -> None:
    (checkout / "linux.tar.xz").unlink()
    with pytest.raises(FadelabError, match=r"apt-get install linux-source-6\.12 flex bison bc"):
        kernel.build()


def test_build_without_room_is_refused_before_it_begins(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=100_000_000))
    with pytest.raises(FadelabError, match=r"^the kernel of virtual time needs 700 MB .* and 100 are free"):
        kernel.build()
    assert not list((checkout / ".build").glob("virtual.new*"))


def test_checkout_that_cannot_be_written_is_named(checkout: Path) -> None:
    (checkout / ".build").write_text("a file where the folder shall be")
    with pytest.raises(FadelabError, match=r"cannot be built in .*\.build: .*; be its owner, or root$"):
        kernel.build()


def test_failed_build_leaves_its_log_alone(checkout: Path) -> None:
    with pytest.raises(FadelabError, match=r"^the kernel of virtual time was not built: tar failed; .*virtual\.log"):
        kernel.build()
    assert {path.name for path in (checkout / ".build").iterdir()} == {"virtual.log", "virtual.lock"}


def test_a_checkout_whose_path_make_refuses_is_built_elsewhere() -> None:
    with kernel._sources(Path("/lab/scratch")) as source:
        assert source == Path("/lab/scratch")
    for name in ("my lab", "a:b"):
        with kernel._sources(Path("/", name, "scratch")) as source:
            assert source.is_dir()
            assert re.search(r"[\s:]", str(source)) is None
        assert not source.exists()
