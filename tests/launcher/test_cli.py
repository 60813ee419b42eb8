"""The command line: every command has help, and every error is one line with the right status."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from testbed.cli import app
from testbed.errors import FadelabError
from testbed.paths import root
from tests.harness.live_runs import Capture

ROOT = Path(__file__).parents[2]


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            yield from commands(child, (*path, name))


def raising(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> int:
    """Run a command that raises `error`."""

    @click.command()
    def broken() -> None:
        raise error

    monkeypatch.setitem(app.cli.commands, "broken", broken)
    return app.main(["broken"])


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help(flag: str, capsys: Capture) -> None:
    for path in commands(app.cli):
        assert app.main([*path, flag]) == 0, path
        assert capsys.readouterr().out.startswith(f"Usage: {' '.join(('fadelab', *path))}")
    assert app.main([]) == 0
    assert capsys.readouterr().out.startswith("Usage: fadelab")


def test_a_start_imports_nothing_costly() -> None:
    loaded = "import sys, testbed.cli.app; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", loaded], cwd=ROOT, capture_output=True, text=True, check=True)
    libraries = {"numpy", "scipy", "matplotlib", "pyarrow", "pydantic", "pyroute2", "rich", "flask", "yaml"}
    assert not (libraries | {"linklayer", "hosts"}) & set(ran.stdout.split())


def test_our_plots_have_no_parts_of_debians_matplotlib(tmp_path: Path) -> None:
    """As its python3-matplotlib does: a .pth that is read after ours, and makes a package of its own folder."""
    package = "import sys, types; sys.modules.setdefault('mpl_toolkits', types.ModuleType('mpl_toolkits'))"
    (tmp_path / "other.pth").write_text(f"{package}.__dict__.setdefault('__path__', []).append({str(tmp_path)!r})\n")
    code = f"import site; site.addsitedir({str(tmp_path)!r}); import mpl_toolkits.mplot3d; import matplotlib.figure"
    command = [sys.executable, "-W", "error::UserWarning", "-c", code]
    assert subprocess.run(command, capture_output=True, text=True, check=False).stderr == ""


def test_version_is_the_projects(capsys: Capture) -> None:
    assert app.main(["--version"]) == 0
    assert f'version = "{capsys.readouterr().out.split()[1]}"' in (root() / "pyproject.toml").read_text()


@pytest.mark.parametrize("args", [["nonsense"], ["--nonsense"], ["doctor", "--nonsense"], ["clean", "extra"]])
def test_wrong_usage_is_one_line(args: list[str], capsys: Capture) -> None:
    assert app.main(args) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("fadelab: ")
    assert shown.err.count("\n") == 1


def test_a_known_error_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    class SpecialError(FadelabError):
        """A subclass counts as known."""

    assert raising(monkeypatch, SpecialError("no radio;\nplug one in")) == 2
    assert capsys.readouterr().err == "fadelab: no radio; plug one in\n"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), click.Abort()])
def test_interruption(error: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    assert raising(monkeypatch, error) == 130
    assert capsys.readouterr().err.strip() == "fadelab: interrupted"


#: Ctrl-C in an exec(), which the command handles
INTERRUPTED_IN_EXEC = """
from testbed.cli import app

def main():
    try:
        exec("raise KeyboardInterrupt")
    except KeyboardInterrupt:
        return 130

app.main = main
"""


def test_a_command_that_is_interrupted_within_an_exec_ends_with_its_status(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTED_IN_EXEC)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    ended = subprocess.run([sys.executable, "-P", "-m", "testbed"], env=environment, check=False)
    assert ended.returncode == 130


def test_an_unknown_error_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path) -> None:
    monkeypatch.setenv("FADELAB_ROOT", str(tmp_path))
    monkeypatch.delenv("FADELAB_DEBUG", raising=False)
    assert raising(monkeypatch, ValueError("odd\nvalue")) == 1
    saved = tmp_path / ".build" / "last-error.txt"
    shown = capsys.readouterr().err
    assert shown == f"fadelab: internal error: ValueError: odd value (traceback in {saved})\n"
    assert "Traceback" in saved.read_text()


def test_debugging_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FADELAB_DEBUG", "1")
    with pytest.raises(ValueError, match="odd"):
        raising(monkeypatch, ValueError("odd"))


def test_a_command_returns_its_status(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def seven() -> int:
        return 7

    monkeypatch.setitem(app.cli.commands, "seven", seven)
    assert app.main(["seven"]) == 7


GROUPS = {name: command for name, command in app.cli.commands.items() if isinstance(command, click.Group)}


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_without_a_command_tells_its_commands_line_by_line(group: str, capsys: Capture) -> None:
    status = app.main([group])
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert err.startswith(f"Usage: fadelab {group} ")
    told = {line.split()[0] for line in err.splitlines() if line.startswith("  ") and line.strip()}
    assert told >= {name for name, command in GROUPS[group].commands.items() if not command.hidden}
