"""Records for tests, which name only the fields that matter to them."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar, get_type_hints

from telemetry.records import DatabaseRecord

R = TypeVar("R", bound=DatabaseRecord)
_FULL: Mapping[type, Any] = {
    int: lambda n: 1000 + n,
    float: lambda n: n + 0.25,
    bool: lambda n: True,
    str: "text{}".format,
}


def recorded(kind: type[R], **given: Any) -> R:
    """A record whose other fields are None where they may be, else 0, False or empty."""
    values: dict[str, Any] = {name: None if optional else hint() for name, (hint, optional) in _hints(kind).items()}
    return kind(**values | given)


def full(kind: type[R], **given: Any) -> R:
    """A record whose other fields have a value each, all different."""
    values: dict[str, Any] = {name: _FULL[hint](n) for n, (name, (hint, _)) in enumerate(_hints(kind).items())}
    return kind(**values | given)


def _hints(kind: type[R]) -> dict[str, tuple[type, bool]]:
    """The type of each field, and whether it may be None."""
    hints = get_type_hints(kind)
    types = {field.name: getattr(hints[field.name], "__args__", (hints[field.name],)) for field in fields(kind)}
    return {name: (some[0], type(None) in some) for name, some in types.items()}
