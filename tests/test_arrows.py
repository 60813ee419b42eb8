"""Holds the repository to its layers: which folder may import which, and the inputs that a core may not read.

Arrows of import point down the table only, every arrow of the table is used, and no modules import each other in a
circle. A core (`channel`, `linklayer`, `tcpip`, `hosts/tcp`, `hosts/engine`, `hosts/workloads`) has no clock, no
socket, no thread and no global random: `now` and a seeded generator are passed in.
"""

import ast
import tomllib
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent

EVERYTHING = frozenset(
    {"testbed", "dashboard", "flowgraphs", "hosts", "linklayer", "channel", "tcpip", "telemetry", "experiments"}
    | {"common", "hil_tests", "tests", "benchmarks"}
)
TESTS = frozenset({"tests", "benchmarks", "hil_tests"})
BELOW_TESTBED = EVERYTHING - TESTS - {"testbed", "experiments"}

#: folder -> the other top-level folders it may import from
MAY_IMPORT = {
    "testbed": BELOW_TESTBED,
    "dashboard": frozenset({"common", "linklayer", "telemetry"}),
    "flowgraphs": frozenset({"common", "channel"}),
    "hosts": frozenset({"common", "linklayer", "tcpip", "telemetry"}),
    "linklayer": frozenset({"common", "tcpip"}),
    "channel": frozenset({"common"}),
    "tcpip": frozenset({"common"}),
    "common": frozenset(),
    "telemetry": frozenset({"common"}),
    "experiments": frozenset({"common", "testbed", "hosts", "linklayer", "channel", "tcpip"}),
    **dict.fromkeys(TESTS, EVERYTHING),
}

#: room of testbed/ -> the other rooms it may import from; the files beside the rooms join them
ROOMS = {
    "campaigns": frozenset({"results", "scenario", "tiers"}),
    "cli": frozenset({"campaigns", "exports", "live", "papers", "reports", "results", "scenario", "tiers", "virtual"}),
    "exports": frozenset({"model", "results", "scenario"}),
    "live": frozenset({"results", "scenario", "tiers"}),
    "model": frozenset({"results", "scenario", "tiers"}),
    "papers": frozenset({"campaigns", "model", "results", "scenario"}),
    "reports": frozenset({"campaigns", "results"}),
    "results": frozenset({"scenario", "tiers"}),
    "scenario": frozenset({"tiers"}),
    "tiers": frozenset(),
    "virtual": frozenset({"live", "results", "scenario"}),
}

#: rooms of testbed/ that make runs -> what they may import of scenario/: the plan, no part of the schema
PLAN = {
    "live": frozenset({"testbed.scenario.run_plan", "testbed.scenario.file.plan_of"}),
    "model": frozenset({"testbed.scenario.run_plan"}),
    "virtual": frozenset({"testbed.scenario.run_plan", "testbed.scenario.file.plan_of"}),
}

CORES = ("channel", "linklayer", "tcpip", "hosts/tcp", "hosts/engine", "hosts/workloads")
FORBIDDEN_IN_CORES = frozenset(
    {"time", "socket", "threading", "asyncio", "select", "selectors", "datetime", "secrets", "os"}
    | {"numpy.random", "multiprocessing", "subprocess", "signal"}
)


class Import(NamedTuple):
    line: int
    #: dotted; for `from a import b` both "a" and "a.b" are given, since b may be a module
    names: tuple[str, ...]


def imports(tree: ast.AST, package: tuple[str, ...]) -> Iterator[Import]:
    """Every import in a file, wherever it stands; `package` resolves relative ones."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(node.lineno, (alias.name,))
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*base, *([node.module] if node.module else [])))
            for alias in node.names:
                yield Import(node.lineno, (module, f"{module}.{alias.name}"))


def is_core(path: str) -> bool:
    return any(path.startswith(f"{core}/") for core in CORES)


def violations(path: str, source: str) -> list[str]:
    """What the file at `path` (relative to the root, with slashes) does that its layer may not do."""
    folders = tuple(path.split("/")[:-1])
    found = []
    if folders[0] not in MAY_IMPORT:
        return [f"{path}: the folder {folders[0]}/ is not in the table of layers"]
    try:
        tree = ast.parse(source, path)
    except SyntaxError as error:
        return [f"{path}:{error.lineno}: {error.msg}"]
    for line, names in imports(tree, folders):
        found += [
            f"{path}:{line}: {'/'.join(folders[: arrow.depth])} may not import {arrow.target}"
            for arrow in arrows(folders, names)
            if arrow.target not in arrow.allowed
        ]
        plan = PLAN.get(folders[1]) if folders[0] == "testbed" and len(folders) > 1 else None
        if plan is not None and _room(names) == "scenario" and not plan & set(names):
            found.append(f"{path}:{line}: testbed/{folders[1]} takes the plan, not the parts of the schema")
        if is_core(path):
            for name in names:
                parts = name.split(".")
                prefixes = {".".join(parts[: end + 1]) for end in range(len(parts))}
                found += [
                    f"{path}:{line}: a core may not import {forbidden}"
                    for forbidden in sorted(prefixes & FORBIDDEN_IN_CORES)
                ]
    if is_core(path):
        found += [f"{path}:{line}: {what}" for line, what in global_random(tree)]
    return list(dict.fromkeys(found))


class Arrow(NamedTuple):
    """An import that leaves a top-level folder (depth 1) or a room of testbed/ (depth 2)."""

    depth: int
    target: str
    allowed: frozenset[str]


def arrows(folders: tuple[str, ...], names: tuple[str, ...]) -> Iterator[Arrow]:
    """The arrows of one import of a file in `folders`."""
    target = names[0].split(".")[0]
    if target in EVERYTHING and target != folders[0]:
        yield Arrow(1, target, MAY_IMPORT[folders[0]])
    if folders[0] == "testbed" and len(folders) > 1:
        room = _room(names)
        if room and room != folders[1]:
            yield Arrow(2, room, ROOMS[folders[1]])


def unused_arrows(sources: Mapping[str, str]) -> list[str]:
    """The arrows of the tables that no file takes; the rule that tests may import everything is no arrow."""
    used = set()
    for path, source in sources.items():
        folders = tuple(path.split("/")[:-1])
        for _, names in imports(ast.parse(source, path), folders):
            used |= {(folders[arrow.depth - 1], arrow.target) for arrow in arrows(folders, names)}
    return [
        f"no file of {folder} imports {target}"
        for table in (MAY_IMPORT, ROOMS)
        for folder, targets in table.items()
        if folder not in TESTS
        for target in sorted(targets)
        if (folder, target) not in used
    ]


class _WithoutTypeChecking(ast.NodeTransformer):
    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        return node.orelse if ast.unparse(node.test).endswith("TYPE_CHECKING") else node


def circle(sources: Mapping[str, str]) -> list[str]:
    """A circle of modules that import each other, at any depth of functions; empty: there is none.

    Imports under `if TYPE_CHECKING` do not count. Importing a submodule does not count as importing its package.
    """
    paths = {path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): path for path in sources}
    graph = {}
    for module, path in paths.items():
        tree = _WithoutTypeChecking().visit(ast.parse(sources[path], path))
        found = imports(tree, tuple(path.split("/")[:-1]))
        targets = (next((name for name in reversed(names) if name in paths), module) for _, names in found)
        graph[module] = set(targets) - {module}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [str(module) for module in error.args[1]]
    return []


def _room(names: tuple[str, ...]) -> str:
    """The room of testbed/ that an import is from; empty: none."""
    found = [name.split(".")[1] for name in names if name.startswith("testbed.")]
    return next((room for room in found if room in ROOMS), "")


def global_random(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Uses of randomness that no caller has seeded, as (line, what)."""
    modules = local_names(tree, "random")
    arrays = local_names(tree, "numpy")
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "random":
            for alias in node.names:
                if alias.name != "Random":
                    yield node.lineno, f"a core may not import random.{alias.name}"
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in modules and node.attr != "Random":
                yield node.lineno, f"a core may not use random.{node.attr}"
            if node.value.id in arrays and node.attr == "random":
                yield node.lineno, "a core may not use numpy.random"
        elif (
            isinstance(node, ast.Call)
            and not (node.args or node.keywords)
            and ast.unparse(node.func) in {"Random", *(f"{module}.Random" for module in modules)}
        ):
            yield node.lineno, "a core may not make an unseeded Random"


def local_names(tree: ast.AST, module: str) -> set[str]:
    """The names under which a file knows `module`."""
    aliases = (alias for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names)
    return {alias.asname or alias.name for alias in aliases if alias.name == module}


def python_files() -> list[str]:
    """Every Python file inside a top-level folder; folders with a dot and run results are not ours."""
    tops = [top for top in ROOT.iterdir() if top.is_dir() and top.name[0] != "." and top.name != "runs"]
    return sorted(path.relative_to(ROOT).as_posix() for top in tops for path in top.rglob("*.py"))


def test_mypy_checks_every_folder_of_python() -> None:
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["packages"]
    assert set(packages) == {path.partition("/")[0] for path in python_files()} == EVERYTHING


def test_every_file_keeps_to_its_layer() -> None:
    found = [line for path in python_files() for line in violations(path, (ROOT / path).read_text())]
    assert not found, "\n".join(found)


def product() -> dict[str, str]:
    """The sources of the product by path."""
    return {path: (ROOT / path).read_text() for path in python_files() if path.partition("/")[0] not in TESTS}


def test_every_allowed_arrow_is_used() -> None:
    assert unused_arrows(product()) == []


def test_an_unused_arrow_is_seen() -> None:
    found = unused_arrows({"testbed/live/a.py": "import dashboard\nfrom testbed.results import store"})
    assert {"no file of live imports scenario", "no file of testbed imports channel"} < set(found)
    assert not {"no file of live imports results", "no file of testbed imports dashboard"} & set(found)


def test_no_modules_import_each_other() -> None:
    assert circle(product()) == []


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("import p.b", "import p.a"),
        ("from p import b", "def f():\n    from p.a import x"),
        ("from . import b", "class C:\n    def f(self):\n        from .a import x"),
        ("from p.b import x", "if TYPE_CHECKING:\n    import p.b\nelse:\n    import p.a"),
    ],
)
def test_a_circle_is_seen(a: str, b: str) -> None:
    assert set(circle({"p/a.py": a, "p/b.py": b})) == {"p.a", "p.b"}


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("import p.b", "if TYPE_CHECKING:\n    import p.a"),
        ("from p.b import x", "if typing.TYPE_CHECKING:\n    from p import a"),
        ("from p import b, c", "import p.c"),
    ],
)
def test_imports_for_types_alone_make_no_circle(a: str, b: str) -> None:
    assert circle({"p/__init__.py": "import p.a", "p/a.py": a, "p/b.py": b, "p/c.py": ""}) == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("channel/a.py", "import telemetry.records"),
        ("channel/a.py", "def f():\n    from linklayer import slacp"),
        ("telemetry/a.py", "from hosts.tcp.connection import Connection"),
        ("linklayer/a.py", "import channel"),
        ("tcpip/a.py", "import socket"),
        ("linklayer/slacp/a.py", "from ... import hosts\nfrom testbed import cli"),
        ("dashboard/a.py", "import testbed"),
        ("testbed/results/a.py", "from testbed.live.live_run import run_live"),
        ("testbed/model/a.py", "from testbed import live"),
        ("testbed/model/a.py", "from testbed.scenario.schema import Scenario"),
        ("testbed/live/a.py", "from testbed.scenario import schema"),
        ("testbed/live/a.py", "from testbed.scenario.file import validate"),
        ("experiments/a.py", "import telemetry"),
        ("hosts/a.py", "import flowgraphs"),
        ("testbed/a.py", "import tests"),
        ("elsewhere/a.py", ""),
        ("testbed/a.py", "def"),
        ("channel/a.py", "import time"),
        ("channel/a.py", "import os.path"),
        ("channel/a.py", "from numpy import random"),
        ("channel/a.py", "import numpy as np\nx = np.random.default_rng(1)"),
        ("linklayer/a.py", "if True:\n    import asyncio"),
        ("hosts/tcp/a.py", "from datetime import datetime"),
        ("hosts/tcp/a.py", "import random\nx = random.random()"),
        ("hosts/tcp/a.py", "import random as r\nx = r.choice([1])"),
        ("hosts/tcp/a.py", "from random import randrange"),
        ("hosts/tcp/a.py", "import random\nx = random.Random()"),
        ("hosts/tcp/a.py", "from random import Random\nx = Random()"),
    ],
)
def test_a_violation_is_seen(path: str, source: str) -> None:
    assert violations(path, source)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        (
            "channel/a.py",
            "import random\nimport channel.b\ndef f(r: random.Random): return r.random()",
        ),
        ("channel/a.py", "from random import Random\nx = Random(1)"),
        ("channel/a.py", "import random\nx = random.Random(1)"),
        ("experiments/a.py", "import channel.errors"),
        ("linklayer/a.py", "from tcpip.segment import Segment"),
        ("linklayer/slacp/a.py", "from . import b\nfrom .b import c\nfrom ..queues import d"),
        ("hosts/a.py", "import os, time\nimport tcpip"),
        ("testbed/a.py", "import hosts, channel, dashboard"),
        ("tests/a.py", "import testbed, experiments, time"),
    ],
)
def test_what_is_allowed_passes(path: str, source: str) -> None:
    assert violations(path, source) == []
