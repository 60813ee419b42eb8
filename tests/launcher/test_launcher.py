"""`./fadelab` itself, on a copy with nothing to download: an empty lock and a command line of three lines.

The setups here are real (a venv is made), but need neither network nor root.
"""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.patient

ROOT = Path(__file__).resolve().parent.parent.parent
NOBODY = 65534
FAKE_CLI = "import os, sys\nprint(os.environ['FADELAB_ROOT'], *sys.argv[1:])\n"
FAKE_PART = "cmake_minimum_required(VERSION 3.25)\nproject(nothing NONE)\n"
#: everything the launcher calls up to its refusal; sudo is not among them
TOOLS = ["bash", "readlink", "sha256sum", "cat", "mkdir", "flock", "grep", "dpkg-query", "apt-get", "rm"]


@pytest.fixture
def copy() -> Iterator[Path]:
    """A checkout that any user may enter, unlike pytest's own folders, in a folder of an odd name."""
    with tempfile.TemporaryDirectory(prefix="fadelab test ä'-") as name:
        copy = Path(name).resolve()
        copy.chmod(0o755)
        shutil.copy(ROOT / "fadelab", copy)
        groups = "[base]\n\n[dashboard]\nbash\n\n[tests]\nfadelab-no-such-package  # for its sake\n"
        (copy / "packages.apt").write_text(groups)
        (copy / "requirements.lock").write_text("# nothing\n")
        (copy / "testbed").mkdir()
        (copy / "testbed" / "__main__.py").write_text(FAKE_CLI)
        for part in ("vusrp", "native"):
            folder = copy / "flowgraphs" / part
            folder.mkdir(parents=True)
            (folder / "CMakeLists.txt").write_text(FAKE_PART)
        yield copy


def environment(**changes: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FADELAB", "PYTHON"))}
    return kept | {"FADELAB_ANY_OS": "1"} | changes


def start(launcher: Path, *args: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [str(launcher), *args]
    env = options.pop("env", environment())
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=env, **options)


def test_path_with_a_colon_is_refused(copy: Path) -> None:
    place = copy / "of:lab"
    place.mkdir()
    shutil.copy(copy / "fadelab", place)
    refused = start(place / "fadelab", "run")
    assert (refused.returncode, refused.stdout) == (2, "")
    said = "has a colon, which ends a path in PYTHONPATH and UHD_MODULE_PATH: move or rename the folder"
    assert refused.stderr == f"fadelab: {place} {said}\n"
    assert {path.name for path in place.iterdir()} == {"fadelab"}


def test_first_start_interruption_second_start_and_failure(copy: Path, tmp_path: Path) -> None:
    """One story in one test, because every setup takes seconds."""
    stamp = copy / ".venv" / "fadelab-base-stamp"
    setup = subprocess.Popen(
        [copy / "fadelab"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    )
    with setup:
        assert setup.stderr is not None
        for line in setup.stderr:
            if line.startswith("fadelab: making .venv …"):
                break
        setup.send_signal(signal.SIGTERM)
        said = setup.stderr.read()
    assert setup.returncode == 143
    # the other jobs say what they do until the signal comes
    *ended, last = said.splitlines()
    assert last == "fadelab: interrupted while preparing; the next start begins again"
    assert not [line for line in ended if "failed" in line]
    assert not stamp.exists()

    # Where one stands is not where the program is, whatever lies there.
    (tmp_path / "testbed").mkdir()
    (tmp_path / "testbed" / "__main__.py").write_text("print('the wrong one')\n")
    whole = start(copy / "fadelab", "run", "--a b", cwd=tmp_path)
    assert (whole.returncode, whole.stdout) == (0, f"{copy} run --a b\n"), whole.stderr
    assert "making .venv" in whole.stderr
    assert "installing Debian packages" not in whole.stderr

    (copy / "testbed" / "__main__.py").write_text("import os\nprint(os.environ['HOME'])\n")
    homeless = {name: value for name, value in environment().items() if name != "HOME"}
    assert start(copy / "fadelab", env=homeless).stdout == f"{pwd.getpwuid(os.geteuid()).pw_dir}\n"
    (copy / "testbed" / "__main__.py").write_text(FAKE_CLI)

    link = tmp_path / "elsewhere"
    link.symlink_to(copy / "fadelab")
    second = start(link, "x", cwd="/")
    assert (second.returncode, second.stdout, second.stderr) == (0, f"{copy} x\n", "")

    # what only some commands need is looked for when one of them comes
    group = copy / ".venv" / "fadelab-dashboard-stamp"
    assert not group.exists()
    page = start(copy / "fadelab", "dashboard", "--port", "1")
    assert (page.returncode, page.stdout) == (0, f"{copy} dashboard --port 1\n"), page.stderr
    assert "making .venv" not in page.stderr
    assert group.exists()
    assert start(copy / "fadelab", "dashboard").stderr == ""

    (copy / "requirements-full.lock").write_text("# nothing\n")
    full = start(copy / "fadelab", "compile")
    assert (full.returncode, full.stdout) == (0, f"{copy} compile\n"), full.stderr
    assert "installing Python packages (full): done" in full.stderr
    assert start(copy / "fadelab", "papers").stderr == ""

    # one that fails ends the others
    (copy / "requirements.lock").write_text("# nothing more\n")
    recipe = copy / "flowgraphs" / "vusrp" / "CMakeLists.txt"
    recipe.write_text(FAKE_PART + "message(FATAL_ERROR broken)\n")
    broken = start(copy / "fadelab")
    assert broken.returncode == 2
    assert "configuring the virtual USRP failed (status 1); the end of " in broken.stderr
    assert "making .venv: done" not in broken.stderr
    assert not stamp.exists()
    recipe.write_text(FAKE_PART)

    (copy / "requirements.lock").write_text("not a requirement\n")
    failed = start(copy / "fadelab")
    assert failed.returncode == 2
    assert "installing Python packages (base) failed (status 1); the end of " in failed.stderr
    assert "ERROR: Invalid requirement: 'not a requirement'" in failed.stderr
    assert not stamp.exists()


def test_missing_packages_without_root_or_sudo_is_one_line(copy: Path, tmp_path: Path) -> None:
    (copy / "packages.apt").write_text("[base]\nfadelab-no-such-package  # to be missing\n")
    tools = copy / "tools"
    tools.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        if found is None:
            pytest.skip(f"needs {tool}")
        (tools / tool).symlink_to(found)
    as_user: dict[str, object] = {}
    if os.geteuid() == 0:
        os.chown(copy, NOBODY, NOBODY)
        as_user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    refused = start(copy / "fadelab", env=environment(PATH=str(tools)), **as_user)
    assert refused.returncode == 2
    said = [line for line in refused.stderr.splitlines() if "FADELAB_ANY_OS" not in line]
    assert said == [
        "fadelab: these Debian packages are missing: fadelab-no-such-package; "
        "run me as root, or install them first: apt-get install fadelab-no-such-package"
    ]
    assert not (copy / ".venv").exists()
