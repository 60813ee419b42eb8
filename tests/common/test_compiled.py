"""The build of the compiled cores: when it is used, and what it must not change."""

import json
import os
import pickle
import random
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import astuple, fields, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_type_hints

import pytest

from channel.errors import ERASED, ERROR_MODELS, ErrorModel, ErrorModelPlugin
from common import compiled
from common.registry import Registry
from hosts.tcp.config import SEAMS, TcpConfig
from linklayer.queues import QUEUES
from tcpip.segment import Flow, IpPacket
from testbed.cli.compile import ensure_compiled
from testbed.cli.machine import compiler
from testbed.errors import FadelabError
from testbed.model.virtual_clock import VirtualClock
from testbed.model.wired_link import Wire
from testbed.virtual.messages import Message

PLUGIN = """
from dataclasses import dataclass
from channel.errors import ERASED, INTACT, ErrorModel, ErrorModelPlugin

class Second(ErrorModel):
    count = 0

    def judge(self, start, end, nbytes):
        self.count += 1
        return ERASED if self.count % 2 == 0 else INTACT

@dataclass(frozen=True, kw_only=True)
class Options:
    pass

ERROR_MODEL = ErrorModelPlugin(
    name="second", summary="every second", options=Options, make=lambda options, rng: Second(), example={}
)
"""


@pytest.mark.parametrize(
    ("stamp", "pure", "state"),
    [
        (None, "", "interpreted: not built"),
        ({"common/units.py": compiled.digest(Path("common/units.py"))}, "0", "compiled"),
        ({"common/units.py": compiled.digest(Path("common/units.py"))}, "1", compiled.PURE),
        ({"common/units.py": "0" * 64}, "", "interpreted: common/units.py has changed"),
        ({"common/gone.py": "0" * 64}, "", "interpreted: common/gone.py has changed"),
    ],
)
def test_a_build_is_used_whole_or_not_at_all(
    stamp: dict[str, str] | None, pure: str, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "BUILD", tmp_path)
    monkeypatch.setenv("FADELAB_PURE", pure)
    if stamp is not None:
        (tmp_path / "stamp.json").write_text(json.dumps(stamp))
    assert compiled.look() == state


def test_the_cores_are_compiled_and_what_gains_nothing_is_not() -> None:
    names = compiler.sources()
    assert {"hosts/tcp/connection.py", "linklayer/queues/red.py", "channel/errors/__init__.py"} <= set(names)
    assert not {"hosts/__init__.py", "channel/replay.py", "hosts/engine/agent.py"} & set(names)


def test_a_file_that_git_does_not_know_stays_interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "_tracked", lambda: {"hosts/tcp/sender.py", "README.md"})
    assert compiler.sources() == ["hosts/tcp/sender.py"]


REGISTRIES: tuple[Mapping[str, Any], ...] = (ERROR_MODELS, QUEUES, *SEAMS.values())
OPTIONS = [plugin.options for registry in REGISTRIES for plugin in registry.values()]


@pytest.mark.interpreted
@pytest.mark.parametrize("kind", [TcpConfig, *OPTIONS])
def test_fields_have_the_same_types_by_their_source(kind: type[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_dataclass(kind)
    sources = {base.__module__: Path(*base.__module__.split(".")) for base in kind.__mro__[:-1]}
    files = {
        module: path.with_suffix(".py") if (compiled.ROOT / path.with_suffix(".py")).exists() else path / "__init__.py"
        for module, path in sources.items()
    }
    monkeypatch.setattr(compiled, "_found", files)
    assert compiled.hints_of(kind) == get_type_hints(kind, include_extras=True)


def test_a_plugin_beside_the_cores_works_with_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import channel.errors

    (tmp_path / "second.py").write_text(PLUGIN)
    monkeypatch.setattr(channel.errors, "__path__", [*channel.errors.__path__, str(tmp_path)])
    plugin = Registry("channel.errors", "ERROR_MODEL", ErrorModelPlugin)["second"]
    model = plugin.make(plugin.options(), random.Random(1))
    assert isinstance(model, ErrorModel)
    clock, arrived = VirtualClock(), list[IpPacket]()
    wire = Wire(clock, arrived.append, rate_bps=8000, errors=model)
    for _ in range(5):
        wire.take(IpPacket(Flow(1, 2, 3, 4), 100))
    clock.run()
    assert (len(arrived), wire.corrupted, clock.now) == (3, 2, 500_000_000)
    assert model.judge(0, 1, 1) is ERASED


def named_in(hint: Any, found: set[type]) -> Iterator[type]:
    """Yield the classes that objects of a type can consist of."""
    if isinstance(hint, type) and hint not in found:
        found.add(hint)
        yield hint
        for part in get_type_hints(hint).values():
            yield from named_in(part, found)
    for part in get_args(hint):
        yield from named_in(part, found)


PICKLED = """
import pickle, sys
from importlib import import_module

made = getattr(import_module(sys.argv[1]), sys.argv[2])(*range(int(sys.argv[3])))
sys.stdout.buffer.write(pickle.dumps(made))
"""


def test_what_an_interpreted_machine_says_is_read_compiled() -> None:
    cores = {source.removesuffix(".py").replace("/", ".") for source in compiler.sources()}
    crossing = [kind for kind in named_in(Message, set()) if kind.__module__ in cores]
    assert crossing
    for kind in crossing:
        values = tuple(range(len(fields(kind))))
        command = (sys.executable, "-P", "-c", PICKLED, kind.__module__, kind.__name__, str(len(values)))
        for pure in "10":
            said = subprocess.run(command, capture_output=True, check=True, env=os.environ | {"FADELAB_PURE": pure})
            assert astuple(pickle.loads(said.stdout)) == values


def test_without_a_compiler_one_line_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(FadelabError, match="apt-get install gcc python3-dev"):
        compiler.build()


def test_a_paper_goes_on_without_a_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    monkeypatch.setattr(compiled, "_state", "interpreted: not built")
    ensure_compiled()
    [line] = capsys.readouterr().err.splitlines()
    assert line.endswith("apt-get install gcc python3-dev; going on with interpreted cores")


def test_new_plugins_are_looked_for_beside_the_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    package = ModuleType("linklayer.queues")
    package.__path__ = ["/where the shared object is"]
    monkeypatch.setattr(compiled, "_found", {package.__name__: Path("linklayer/queues/__init__.py")})
    assert compiled.path_of(package) == [str(compiled.ROOT / "linklayer" / "queues")]
    monkeypatch.setattr(compiled, "_found", {})
    assert compiled.path_of(package) == package.__path__
