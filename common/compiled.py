"""The compiled cores: the same Python, made native by mypyc.

`common/__init__.py` calls `install`, and every package of cores imports `common` first. A build is a folder with a
shared object per module and `stamp.json`, the SHA-256 of each source; `testbed/cli/machine/compiler.py` makes it. It is
used whole or not at all: not when a source has changed since, and not with FADELAB_PURE=1.

| `state()` | meaning |
|---|---|
| `compiled` | the cores are those of the build |
| `interpreted: FADELAB_PURE is set` | by wish |
| `interpreted: not built` | `./fadelab compile` has not run |
| `interpreted: FILE has changed` | likewise, since the change |

Rule kept: results never differ. A file that the build does not have, as a new plugin, is interpreted beside it.
"""

import ast
import json
import os
import sys
from collections.abc import Sequence
from hashlib import sha256
from importlib.abc import MetaPathFinder
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec, PathFinder
from importlib.util import spec_from_file_location
from inspect import get_annotations
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / ".build" / "compiled"
#: the module that holds the code of all others
GROUP = "fadelab_cores__mypyc"

#: the state by wish
PURE = "interpreted: FADELAB_PURE is set"
_state = "interpreted: not built"
#: whether the cores of this process are compiled; for cores that choose a form of their data by it
IS_COMPILED = False
#: the sources of the modules of the build that is used
_found: dict[str, Path] = {}


class _Loader(ExtensionFileLoader):
    """Loads the module of a source. A package finds its modules beside that source, those of new plugins, too."""

    def __init__(self, name: str, source: Path) -> None:
        super().__init__(name, str(BUILD / source.with_suffix(EXTENSION_SUFFIXES[0])))
        self.search = [str(ROOT / source.parent)] if source.name == "__init__.py" else None

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        if self.search is not None:
            # mypyc has set the folder of the shared object
            module.__path__ = self.search


class _Finder(MetaPathFinder):
    def __init__(self, modules: dict[str, Path]) -> None:
        self._modules = modules

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        source = self._modules.get(name)
        if source is None:
            # a module beside compiled ones, imported while their package has not yet got its own path
            package = self._modules.get(name.rpartition(".")[0])
            return None if package is None else PathFinder.find_spec(name, [str(ROOT / package.parent)], target)
        loader = _Loader(name, source)
        return spec_from_file_location(name, loader.path, loader=loader, submodule_search_locations=loader.search)


def module_of(source: Path) -> str:
    """Return the name of a module by its file's path, relative to the root."""
    parts = source.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def digest(source: Path) -> str:
    """Return the SHA-256 of a source by its path, relative to the root."""
    return sha256((ROOT / source).read_bytes()).hexdigest()


def _look() -> tuple[str, dict[str, Path]]:
    if os.environ.get("FADELAB_PURE", "0") not in ("", "0"):
        return PURE, {}
    try:
        stamp = json.loads((BUILD / "stamp.json").read_text())
    except FileNotFoundError:
        return "interpreted: not built", {}
    for name, expected in stamp.items():
        source = Path(name)
        if not (ROOT / source).exists() or digest(source) != expected:
            return f"interpreted: {name} has changed", {}
    return "compiled", {module_of(Path(name)): Path(name) for name in stamp} | {GROUP: Path(f"{GROUP}.py")}


def look() -> str:
    """Return the state of a process that begins now."""
    return _look()[0]


def install() -> None:
    """Let the imports from now on find the build, if it may be used; once for each process."""
    global IS_COMPILED, _found, _state
    _state, _found = _look()
    IS_COMPILED = bool(_found)
    if IS_COMPILED:
        sys.meta_path.insert(0, _Finder(_found))


def state() -> str:
    """Return which cores this process runs, and why if they are interpreted."""
    return _state


def path_of(package: ModuleType) -> list[str]:
    """Return the folders of a package's sources: one that a compiled module imports has that of its shared object."""
    source = _found.get(package.__name__)
    own = None if source is None else str(ROOT / source.parent)
    return list(package.__path__) if own is None or own in package.__path__ else [own]


def hints_of(kind: type[Any]) -> dict[str, Any]:
    """Return the types of a dataclass's fields, with their metadata, as `typing.get_type_hints` does.

    A compiled class does not keep them: they are read from its source.
    """
    if not any(base.__module__ in _found for base in kind.__mro__):
        return get_type_hints(kind, include_extras=True)
    hints: dict[str, Any] = {}
    for base in reversed(kind.__mro__[:-1]):
        hints |= _read_hints(base) if base.__module__ in _found else get_annotations(base, eval_str=True)
    return hints


def _read_hints(kind: type[Any]) -> dict[str, Any]:
    """The types of a compiled class's own fields."""
    tree = ast.parse((ROOT / _found[kind.__module__]).read_text())
    (body,) = (node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == kind.__name__)
    names = vars(sys.modules[kind.__module__])
    return {
        field.target.id: eval(ast.unparse(field.annotation), names)
        for field in body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
    }
