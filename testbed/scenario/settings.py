"""Settings of a scenario by their keys, as in `channel.errors.per`: from `--set` and from scheduled changes."""

from pathlib import Path
from typing import Any

import yaml

from common.plain_yaml import parse
from testbed.errors import FadelabError


class ScenarioError(FadelabError):
    """A scenario that is not valid."""


#: parts that may be given by a name alone, and the key of the name in a mapping
_NAMED = {
    "errors": "model", "queue": "kind", "assignment": "kind", "radio": "phy",
    "tcp": "profile", "tcp_h2": "profile", "recovery": "name", "growth": "name",
}  # fmt: skip
#: keys whose values are paths
_PATHS = ("path", "series")
#: parts of these that refuse the keys of their alternatives
_STRICT = ("errors", "queue", "recovery", "growth")


def anchor(raw: Any, base: Path) -> Any:
    """Return values whose relative paths start at `base`."""
    if isinstance(raw, dict):
        return {key: _anchored(key, value, base) for key, value in raw.items()}
    if isinstance(raw, list):
        return [anchor(value, base) for value in raw]
    return raw


def _anchored(key: str, value: Any, base: Path) -> Any:
    """Return the value of `key`, which may be `a.b.c`, its paths absolute."""
    return (
        str(base / value) if str(key).rpartition(".")[2] in _PATHS and isinstance(value, str) else anchor(value, base)
    )


def apply_setting(raw: dict[str, Any], setting: str) -> None:
    """Apply one `a.b.0.c=value`; the value is YAML, its relative paths start at the current folder."""
    key, value = split_setting(setting, Path.cwd())
    apply_value(raw, key, value, base=Path.cwd(), setting=f"--set {setting}")


def split_setting(setting: str, base: Path) -> tuple[str, Any]:
    """Return key and value of `a.b.0.c=value`; the value is YAML, its relative paths start at `base`."""
    key, equals, text = setting.partition("=")
    if not equals or not key:
        raise ScenarioError(f"--set {setting}: must be key=value, as in channel.per=0.1")
    try:
        value = parse(text)
    except yaml.YAMLError:
        raise ScenarioError(f"--set {setting}: the value is not valid YAML") from None
    return key, _anchored(key, value, base)


def apply_value(raw: dict[str, Any], key: str, value: Any, *, base: Path, setting: str) -> None:
    """Set `a.b.0.c` to a value, relative paths in which start at `base`; `setting` names its source in errors."""
    *parents, last = key.split(".")
    value = _anchored(last, value, base)
    here: Any = raw
    for parent in parents:
        if isinstance(here, list):
            here = _item(here, parent, setting)
            if not isinstance(here, dict | list):
                raise ScenarioError(f"{setting}: {parent} is {here!r} and has no keys")
            continue
        if not isinstance(here.get(parent), dict | list):
            # a name such as `queue: red` becomes a mapping, in which the key is set
            name = here.get(parent)
            here[parent] = {_NAMED[parent]: name} if isinstance(name, str) and parent in _NAMED else {}
        here = here[parent]
    if isinstance(here, list):
        _item(here, last, setting)
        here[int(last)] = value
    else:
        part = parents[-1] if parents else ""
        if part in _STRICT and last == _NAMED[part] and here.get(last) != value:
            # another error model or queue has other keys
            here.clear()
        here[last] = value


def _item(items: list[Any], index: str, setting: str) -> Any:
    if not index.isdecimal() or int(index) >= len(items):
        raise ScenarioError(f"{setting}: {index!r} is no index into {len(items)} entries")
    return items[int(index)]
