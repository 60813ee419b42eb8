"""The keys of a scenario in words: their names, types, ranges, defaults and meanings.

Rules kept: names, types, ranges and defaults come from the declarations, the meaning of a key from the comment above it
in the source.
"""

import ast
import dataclasses
import re
import types
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from common.compiled import hints_of
from common.options import LARGEST, InOrder, Matches, OneOf
from testbed.paths import root

_BASES = {bool: "true or false", int: "whole number", float: "number", str: "text", Path: "path", dict: "mapping"}
_NONE = re.compile(r"\b[Nn]one:")
_BOTH_ENDS = re.compile(r"(\S+) or more, (\S+) or less")


def table_of(keys: Iterable[tuple[str, str, str, str]]) -> str:
    """Return a table of keys: name, type, default, meaning."""
    head = "| key | value | default | meaning |\n|---|---|---|---|\n"
    return head + "".join(f"| `{name}` | {' | '.join(map(cell, others))} |\n" for name, *others in keys)


def keys_of_model(part: type[BaseModel]) -> list[tuple[str, str, str, str]]:
    """Return the keys of a part of a scenario: name, type with its range, default, meaning."""
    comments = _comments(part)
    return [
        (name, _model_words(field), _model_default(field), comments.get(name, ""))
        for name, field in part.model_fields.items()
    ]


def _model_words(field: FieldInfo) -> str:
    annotation: Any = field.annotation
    return words(Annotated[annotation, *field.metadata] if field.metadata else annotation)


def _model_default(field: FieldInfo) -> str:
    if field.default_factory is not None:
        return "empty"
    return "required" if field.default is PydanticUndefined else _default(field.default)


def keys_of_dataclass(options: type[Any]) -> Iterator[tuple[str, str, str, str]]:
    """Yield the keys of the options of a plugin, as `keys_of_model` returns them."""
    hints, comments = hints_of(options), _comments(options)
    for field in dataclasses.fields(options):
        default = "required" if field.default is dataclasses.MISSING else _default(field.default)
        yield field.name, words(hints[field.name]), default, comments.get(field.name, "")


def _default(value: Any) -> str:
    if value is None:
        return "`null`"
    if isinstance(value, BaseModel):
        tag = next((getattr(value, name) for name in ("model", "kind", "phy") if hasattr(value, name)), None)
        return "its defaults" if tag is None else f"`{tag}`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple | frozenset | set | list):
        return f"`[{', '.join(map(str, sorted(value) if isinstance(value, frozenset | set) else value))}]`"
    if isinstance(value, float):
        return f"`{value:g}`"
    return "empty" if value == "" else f"`{value}`"


def words(hint: Any) -> str:
    """Return a type in words, with its range."""
    if get_origin(hint) is Annotated:
        base, *limits = get_args(hint)
        return _BOTH_ENDS.sub(r"\1 to \2", ", ".join([words(base), *filter(None, map(_limit, _flat(limits)))]))
    if get_origin(hint) is Literal:
        return " or ".join(f"`{value}`" for value in get_args(hint))
    if get_origin(hint) in (Union, types.UnionType):
        return " or ".join(words(inner) for inner in get_args(hint) if inner is not type(None))
    if get_origin(hint) in (tuple, list, frozenset, set):
        inner = list(dict.fromkeys(words(part) for part in get_args(hint) if part is not ...))
        return f"list of {' and '.join(inner)}"
    origin = get_origin(hint) or hint
    return _BASES.get(origin, "mapping")


def _flat(limits: list[Any]) -> Iterator[Any]:
    for limit in limits:
        yield from limit.metadata if isinstance(limit, FieldInfo) else (limit,)


def _limit(limit: Any) -> str:
    match limit:
        case Gt(gt=least):
            return f"above {least}"
        case Ge(ge=least):
            return f"{least} or more"
        case Lt(lt=end):
            return f"below {end}"
        case Le(le=most) if most == LARGEST:
            return ""
        case Le(le=most):
            return f"{most} or less"
        case MinLen(min_length=least):
            return f"{least} or more of them"
        case InOrder():
            return "shortest and longest"
        case OneOf():
            return "one of " + ", ".join(f"`{name}`" for name in limit.names)
        case Matches():
            return f"matches `{limit.pattern}`"
        case _:
            return ""


def cell(text: str) -> str:
    """Return a text as a cell of a table."""
    return text.replace("|", "\\|")


def _comments(kind: type[Any]) -> dict[str, str]:
    """Return the comments `#:` above the fields of a class and of its bases."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        found |= _comments_in(base.__module__).get(base.__name__, {})
    return found


@cache
def _comments_in(module: str) -> dict[str, dict[str, str]]:
    """Return the comments of each class of a module of the checkout; compiled ones keep none, so the source is read."""
    beside = root() / module.replace(".", "/")
    path = next((path for path in (beside.with_suffix(".py"), beside / "__init__.py") if path.is_file()), None)
    if path is None:
        return {}
    text = path.read_text()
    lines = text.splitlines()
    classes = [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]
    return {
        node.name: {
            field.target.id: comment
            for field in node.body
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
            if (comment := _comment_above(lines, field.lineno - 1))
        }
        for node in classes
    }


def _comment_above(lines: list[str], index: int) -> str:
    words: list[str] = []
    while index > 0 and lines[index - 1].lstrip().startswith("#:"):
        index -= 1
        words.insert(0, lines[index].lstrip().removeprefix("#:").strip())
    # in a scenario None is null
    return _NONE.sub("`null`:", " ".join(words))
