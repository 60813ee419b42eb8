"""Reads scenarios: YAML files and `--set key=value`. Errors are one line with the place and the remedy."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from channel.replay import TraceError
from common.plain_yaml import parse
from common.sides import SIDES
from testbed.scenario import schema
from testbed.scenario.changes import ChangeError
from testbed.scenario.plugin_options import Choice, Part
from testbed.scenario.resolver import resolve
from testbed.scenario.run_plan import Plan
from testbed.scenario.schema import InnerError, Scenario
from testbed.scenario.settings import ScenarioError, anchor, apply_setting
from testbed.scenario.tcp import KINDS


def load(path: Path, settings: Iterable[str] = (), **overrides: Any) -> Scenario:
    """Return the scenario in `path`, changed by `overrides` (None: not given) and then by `key=value` settings.

    Raises ScenarioError with one line: the file and the settings, the key, and the remedy. A setting must not
    contradict an override.
    """
    raw = read_mapping(path, "scenario")
    settings = list(settings)
    given = {key: value for key, value in overrides.items() if value is not None}
    raw.update(given)
    for setting in settings:
        apply_setting(raw, setting)
    for key, value in given.items():
        # settings of a TCP's recovery or growth make a mapping of its name
        now = raw[key].get("profile", value) if isinstance(raw[key], dict) else raw[key]
        if now != value:
            raise ScenarioError(f"{key}: is given twice, {value} by its option and {now} by a setting: leave one out")
    changed = "".join(f" --set {setting}" for setting in settings)
    return validate(raw, f"{path} with{changed}" if changed else str(path), base=path.parent)


def read_mapping(path: Path, kind: str) -> dict[str, Any]:
    """Return the keys and values of a YAML file; `kind` names in errors what it should be.

    Raises ScenarioError with one line.
    """
    try:
        raw = parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        known = sorted(str(p) for p in path.parent.glob("*.yaml")) if path.parent.is_dir() else []
        hint = f"; there are {', '.join(known)}" if known else ""
        raise ScenarioError(f"{path}: no such {kind}{hint}") from None
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ScenarioError(f"{path}: cannot be read: a {kind} is YAML text") from None
    except yaml.YAMLError as error:
        why = " ".join(str(error).split()).replace('in "<unicode string>",', "at")
        raise ScenarioError(f"{path}: not valid YAML: {why}") from None
    if not isinstance(raw, dict):
        found = "is empty" if raw is None else f"holds one {type(raw).__name__}"
        raise ScenarioError(f"{path}: {found}: a {kind} is a mapping of keys to values")
    return raw


def validate(raw: dict[str, Any], where: str, *, base: Path | None = None) -> Scenario:
    """Return the scenario of the values `raw`; `where` names their source in errors.

    `base` is the folder of relative paths. With it, the medium is checked, too: its traces must exist and be complete.
    """
    try:
        scenario = Scenario.model_validate(raw)
    except ValidationError as error:
        raise ScenarioError(f"{where}: {_explain(error)}") from None
    if base is not None:
        scenario = Scenario.model_validate(anchor(raw, base.resolve()))
        plan = resolve(scenario)
        for place, present in ((where, plan), *((f"{where}: changes", change.plan) for change in plan.changes)):
            _check_medium(present, place)
            if present.second is not None:
                _check_medium(present.second, f"{place}: second_link")
    return scenario


def _check_medium(plan: Plan, place: str) -> None:
    for side, station in plan.stations.items():
        key = f"channel.{side}"
        try:
            station.hop.make(buffer_bytes=1)
        except TraceError as error:
            raise ScenarioError(f"{place}: {key}.errors.path: {error}") from None
        except ValueError as error:
            raise ScenarioError(f"{place}: {key}: {error}") from None


def plan_of(values: Mapping[str, Any]) -> Plan:
    """Return the plan of a scenario's values (`Scenario.plain`)."""
    return resolve(validate(dict(values), "scenario"))


def _explain(error: ValidationError, above: tuple[str, ...] = ()) -> str:
    """Turn pydantic's first error, or its first unknown key, into one line; `above` is the path of its keys."""
    found = error.errors(include_url=False)
    # a key that is missing may be there under another name
    first = next((each for each in found if each["type"] == "extra_forbidden"), found[0])
    kind, message, value = first["type"], first["msg"], first.get("input")
    # pydantic's path contains the tags of unions, ours does not; a key that is unknown may have the name of a tag
    last = len(first["loc"]) - 1
    keys = {0, last} if kind == "extra_forbidden" else {0}
    location = [str(part) for i, part in enumerate(first["loc"]) if i in keys or part not in _TAGS]
    place = ".".join((*above, *location))
    if kind == "extra_forbidden":
        *parents, key = (*above, *location)
        here = _keys_below(parents)
        close = difflib.get_close_matches(key, here, n=1)
        what_to_do = f"did you mean {close[0]}?" if close else f"choose from {', '.join(here)}"
        return f"{place}: {'is no key here' if key in _KEYS else 'unknown key'} ({what_to_do})"
    if kind in ("missing", "union_tag_not_found"):
        key = "" if kind == "missing" else f".{first['ctx']['discriminator'].strip(_QUOTE)}"
        return f"{place}{key}: is missing"
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        return f"{place}: must be a mapping of keys to values, not {value!r}"
    if kind in ("tuple_type", "frozen_set_type"):
        return f"{place}: must be a list, not {value!r}"
    if kind == "too_short":
        return f"{place}: needs {first['ctx']['min_length']} entry at least"
    if kind == "union_tag_invalid":
        return f"{place}: {first['ctx']['tag']!r} is unknown: choose from {first['ctx']['expected_tags']}"
    if kind == "value_error":
        cause = first["ctx"]["error"]
        if isinstance(cause, InnerError):
            return _explain(cause.cause, (*above, *location, cause.place))
        if isinstance(cause, ChangeError):
            return _explain(cause.cause, (*above, *location, "changes", str(cause.index), "set"))
        message = str(cause)
        return f"{place}: {message}" if place else message
    given = f" (it is {value!r})" if isinstance(value, str | int | float | bool) else ""
    return f"{place}: {message[0].lower()}{message[1:]}{given}"


def _keys_below(path: Iterable[str]) -> list[str]:
    """Return the keys that are valid at `path` in a scenario, for any choice of models and kinds on the path."""
    parts: set[type[Part]] = {Scenario}
    for name in path:
        if name in SIDES:
            parts = {schema.Direction}
        elif not name.isdecimal():
            fields = [part.model_fields[name] for part in parts if name in part.model_fields]
            parts = {inner for field in fields for inner in _parts_of(field)}
    return sorted({name for part in parts for name in part.model_fields})


def _parts_of(field: FieldInfo) -> Iterator[type[Part]]:
    for annotation in (field.annotation, *field.metadata):
        yield from _parts_in(annotation)


def _parts_in(annotation: Any) -> Iterator[type[Part]]:
    if isinstance(annotation, type) and issubclass(annotation, Part):
        yield annotation
    for inner in annotation.parts.values() if isinstance(annotation, Choice) else get_args(annotation):
        yield from _parts_in(inner)


_QUOTE = "'"


def _all_parts(part: type[Part], found: dict[type[Part], None]) -> dict[type[Part], None]:
    if part not in found:
        found[part] = None
        for field in part.model_fields.values():
            for inner in _parts_of(field):
                _all_parts(inner, found)
    return found


_PARTS: list[type[Part]] = [*_all_parts(Scenario, {}), schema.Direction]
_KEYS = sorted({name for part in _PARTS for name in part.model_fields})
#: the tags of discriminated unions, which pydantic's paths contain
_TAGS = set(KINDS) | {
    tag
    for part in _PARTS
    for name in ("model", "kind", "phy", "name")
    if name in part.model_fields
    for tag in get_args(part.model_fields[name].annotation)
}
