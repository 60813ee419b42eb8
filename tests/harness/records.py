"""Records for tests, which name only the fields that matter to them."""

from collections.abc import Mapping
from typing import Any, TypeVar

from telemetry.records import DatabaseRecord, field_types

R = TypeVar("R", bound=DatabaseRecord)
_FULL: Mapping[type, Any] = {
    int: lambda n: 1000 + n,
    float: lambda n: n + 0.25,
    bool: lambda n: True,
    str: "text{}".format,
}


def recorded(kind: type[R], **given: Any) -> R:
    """A record whose other fields are None where they may be, else 0, False or empty."""
    values: dict[str, Any] = {
        name: None if optional else hint() for name, (hint, optional) in field_types(kind).items()
    }
    return kind(**values | given)


def full(kind: type[R], **given: Any) -> R:
    """A record whose other fields have a value each, all different."""
    values: dict[str, Any] = {name: _FULL[hint](n) for n, (name, (hint, _)) in enumerate(field_types(kind).items())}
    return kind(**values | given)
