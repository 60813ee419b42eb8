"""A package of plugins, made for the purpose."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from common.registry import Registry


@dataclass(frozen=True)
class Kind:
    name: str


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Registry[Kind]]:
    def write(**modules: str) -> Registry[Kind]:
        folder = tmp_path / "some_plugins"
        folder.mkdir()
        (folder / "__init__.py").touch()
        for name, text in modules.items():
            (folder / f"{name}.py").write_text(f"from {__name__} import Kind\n{text}\n")
        monkeypatch.syspath_prepend(tmp_path)
        for name in [name for name in sys.modules if name.split(".")[0] == "some_plugins"]:
            monkeypatch.delitem(sys.modules, name)
        return Registry("some_plugins", "KIND", Kind)

    return write


def test_plugins_are_found_in_the_order_of_their_files(package: Callable[..., Registry[Kind]]) -> None:
    found = package(b="KIND = Kind('two'), Kind('three')", a="KIND = Kind('one')", helper="OTHER = 1")
    assert list(found) == ["one", "two", "three"]
    assert (found["two"], len(found), "four" in found) == (Kind("two"), 3, False)


def test_two_of_one_name_are_refused_with_both_files(package: Callable[..., Registry[Kind]]) -> None:
    found = package(a="KIND = Kind('same')", b="KIND = Kind('same')")
    with pytest.raises(ValueError, match=r"'same' is declared by some_plugins\.a and by some_plugins\.b"):
        len(found)


def test_another_kind_is_refused(package: Callable[..., Registry[Kind]]) -> None:
    with pytest.raises(TypeError, match=r"some_plugins\.a\.KIND is no Kind: 'text'"):
        list(package(a="KIND = 'text'"))


def test_nothing_is_imported_before_somebody_asks(package: Callable[..., Registry[Kind]]) -> None:
    package(a="raise RuntimeError")
    assert "some_plugins" not in sys.modules
