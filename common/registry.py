"""Plugins: each is a module that declares itself, in a package of its kind.

A registry walks such a package when it is first asked. A module declares a plugin (or a tuple of several) under the
registry's attribute, as in `ERROR_MODEL = ErrorModelPlugin(name="bernoulli", …)`; a module without this attribute is a
helper of plugins. So a new plugin is a new file, and no other file changes.

Rule kept: two plugins of one name are refused, with both files named.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol, TypeVar

from common.compiled import path_of


class Plugin(Protocol):
    """The common part of all declarations: the name that scenarios use."""

    @property
    def name(self) -> str:
        """The name."""


T = TypeVar("T", bound=Plugin)


class Registry(Mapping[str, T]):
    """The plugins of `package` by their names, in the order of modules' names and of declarations in a module.

    Raises ValueError when two have the same name, TypeError when a declaration is not of `kind`.
    """

    def __init__(self, package: str, attribute: str, kind: type[T]) -> None:
        self._package = package
        self._attribute = attribute
        self._kind = kind
        self._found: dict[str, T] | None = None

    def __getitem__(self, name: str) -> T:
        return self._plugins()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._plugins())

    def __len__(self) -> int:
        return len(self._plugins())

    def _plugins(self) -> dict[str, T]:
        if self._found is None:
            self._found = self._walk()
        return self._found

    def _walk(self) -> dict[str, T]:
        found: dict[str, T] = {}
        where: dict[str, str] = {}
        for module_info in sorted(iter_modules(path_of(import_module(self._package))), key=lambda info: info.name):
            module = f"{self._package}.{module_info.name}"
            declared = getattr(import_module(module), self._attribute, ())
            for plugin in declared if isinstance(declared, tuple) else (declared,):
                if not isinstance(plugin, self._kind):
                    raise TypeError(f"{module}.{self._attribute} is no {self._kind.__name__}: {plugin!r}")
                if plugin.name in found:
                    raise ValueError(f"{plugin.name!r} is declared by {where[plugin.name]} and by {module}")
                found[plugin.name], where[plugin.name] = plugin, module
        return found
