"""Reading scenarios: a YAML file, `--set key=value`, and one line about what is wrong and where."""

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import ValidationError

from testbed import scenario as schema
from testbed.errors import FadelabError
from testbed.scenario import SIDES, Scenario, TraceErrors


class ScenarioError(FadelabError):
    """A scenario that cannot be run as it stands."""


def load(path: Path, settings: Iterable[str] = (), **overrides: Any) -> Scenario:
    """Return the scenario in `path`, changed by `key=value` settings and by `overrides` (None: not given).

    Raises ScenarioError with one line: the file, the key, and what to do.
    """
    try:
        raw = yaml.safe_load(path.read_text())
    except FileNotFoundError:
        known = sorted(str(p) for p in path.parent.glob("*.yaml")) if path.parent.is_dir() else []
        hint = f"; there are {', '.join(known)}" if known else ""
        raise ScenarioError(f"{path}: no such scenario{hint}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path}: cannot be read: {error}") from None
    except yaml.YAMLError as error:
        raise ScenarioError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(raw, dict):
        raise ScenarioError(f"{path}: must be a mapping of keys to values")
    for setting in settings:
        _apply_setting(raw, setting)
    raw.update({key: value for key, value in overrides.items() if value is not None})
    return validate(raw, str(path), base=path.parent)


def validate(raw: dict[str, Any], where: str, *, base: Path | None = None) -> Scenario:
    """Return the scenario `raw` describes; `where` names its source in errors, `base` anchors relative paths."""
    try:
        scenario = Scenario.model_validate(raw)
    except ValidationError as error:
        raise ScenarioError(f"{where}: {_explain(error, raw)}") from None
    if base is not None:
        for side in SIDES:
            errors = scenario.channel.direction(side).errors
            if isinstance(errors, TraceErrors) and not errors.path.is_absolute():
                return validate(_anchor(raw, base.resolve()), where)
    return scenario


def _anchor(raw: Any, base: Path) -> Any:
    """Make every trace path in `raw` absolute."""
    if isinstance(raw, dict):
        anchored = {key: _anchor(value, base) for key, value in raw.items()}
        if anchored.get("model") == "trace" and "path" in anchored:
            anchored["path"] = str(base / anchored["path"])
        return anchored
    return raw


def _apply_setting(raw: dict[str, Any], setting: str) -> None:
    """Apply one `a.b.0.c=value`; the value is YAML."""
    key, equals, text = setting.partition("=")
    if not equals or not key:
        raise ScenarioError(f"--set {setting}: must be key=value, as in channel.per=0.1")
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        raise ScenarioError(f"--set {setting}: the value is not valid YAML") from None
    if isinstance(value, str):
        value = _number(value)
    *parents, last = key.split(".")
    here: Any = raw
    for parent in parents:
        if isinstance(here, list):
            here = _item(here, parent, setting)
            continue
        if not isinstance(here.get(parent), dict | list):
            # a name such as `errors: high` gives way to the mapping that is being set
            here[parent] = {}
        here = here[parent]
    if isinstance(here, list):
        _item(here, last, setting)
        here[int(last)] = value
    else:
        here[last] = value


def _number(text: str) -> str | float | int:
    """Let 2e6 be a number, which YAML 1.1 takes for a string."""
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else number


def _item(items: list[Any], index: str, setting: str) -> Any:
    if not index.isdigit() or int(index) >= len(items):
        raise ScenarioError(f"--set {setting}: {index!r} is no index into {len(items)} entries")
    return items[int(index)]


def _explain(error: ValidationError, raw: dict[str, Any]) -> str:
    """Turn pydantic's first complaint into one line: where, what, what to do."""
    first = error.errors(include_url=False)[0]
    location = [str(part) for part in first["loc"]]
    # a union's tag is part of pydantic's path, not of ours
    place = ".".join(part for part in location if part not in _TAGS)
    kind, message, value = first["type"], first["msg"], first.get("input")
    if kind == "extra_forbidden":
        close = difflib.get_close_matches(location[-1], _KEYS, n=1)
        return f"{place}: unknown key" + (f" (did you mean {close[0]}?)" if close else "")
    if kind == "missing":
        return f"{place}: is missing"
    if kind == "union_tag_invalid":
        return f"{place}: {first['ctx']['tag']!r} is unknown: choose from {first['ctx']['expected_tags']}"
    if kind == "value_error":
        message = str(first["ctx"]["error"])
        return f"{place}: {message}" if place else message
    given = f" (it is {value!r})" if isinstance(value, str | int | float | bool) else ""
    return f"{place}: {message[0].lower()}{message[1:]}{given}"


_PARTS = [part for part in vars(schema).values() if isinstance(part, type) and issubclass(part, schema.Part)]
_KEYS = sorted({name for part in _PARTS for name in part.model_fields})
#: the tags of discriminated unions, which stand in pydantic's paths
_TAGS = {
    tag
    for part in _PARTS
    for name in ("model", "kind")
    if name in part.model_fields
    for tag in get_args(part.model_fields[name].annotation)
}
