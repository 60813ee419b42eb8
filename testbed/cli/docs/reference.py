"""The scenario reference: every key of a scenario and every plugin, from the schema and the registries.

Rules kept: names, types, ranges and defaults come from the declarations, the meaning of a key from the comment above it
in the source. Nothing is written here by hand but headings.
"""

import ast
import dataclasses
import types
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from channel.capacity import CAPACITY_MODELS
from channel.errors import ERROR_MODELS
from common.compiled import hints_of
from common.options import InOrder, Matches, OneOf
from flowgraphs.phys import PHYS
from hosts.kernel.profiles import PROFILES
from hosts.tcp.growth import GROWTHS
from hosts.tcp.profiles import USER_PROFILES
from hosts.tcp.recovery import RECOVERIES
from hosts.workloads import WORKLOADS
from linklayer.filters import FILTERS
from linklayer.queues import QUEUES
from linklayer.schemes import SCHEMES
from testbed.papers.paper import PAPERS
from testbed.paths import root
from testbed.scenario import schema
from testbed.tiers import TIERS

_INTRODUCTION = """# Scenario reference

This page is made from the program's own declarations, so it has every key, range and default of this version. A key is
changed on the command line by `--set`, as in `--set channel.rate_bps=1e6`. [scenarios.md](scenarios.md) explains them.
"""

#: parts of a scenario: their keys, and their classes
_PARTS: tuple[tuple[str, type[BaseModel]], ...] = (
    ("", schema.Scenario),
    ("link", schema.LinkOptions),
    ("link.fast", schema.FastOptions),
    ("channel", schema.Channel),
    ("channel.excess_delay", schema.ExcessDelayOptions),
    ("channel.fading", schema.FadingOptions),
    ("wired", schema.Wired),
    ("radio", schema.RadioOptions),
    ("timing", schema.Timing),
)

#: kinds of plugins: heading, the key that names one, the place of its options, and the registry
_KINDS: tuple[tuple[str, str, str, Mapping[str, Any]], ...] = (
    ("Link schemes", "link.scheme", "link.{key}", SCHEMES),
    ("Packet filters", "link.filters", "link.{key}", FILTERS),
    ("Queues", "link.queue.kind", "link.queue", QUEUES),
    ("Error models", "channel.errors.model", "channel.errors", ERROR_MODELS),
    ("Capacity models", "channel.assignment.kind", "channel.assignment", CAPACITY_MODELS),
    ("PHYs", "radio.phy", "radio", PHYS),
    ("Workloads", "workloads.N.kind", "workloads.N", WORKLOADS),
)

#: kinds of plugins without options
_NAMED: tuple[tuple[str, str, Mapping[str, Any]], ...] = (
    ("Tiers", "`tier: NAME`, or `--tier NAME`.", TIERS),
    ("Profiles of the kernel's TCP", "`tcp: NAME`, on real-time tiers.", PROFILES),
    ("Profiles of our own TCP", "`tcp: NAME` on tier `model`, `tcp: user:NAME` elsewhere.", USER_PROFILES),
    ("Loss recoveries of our own TCP", "A profile names one.", RECOVERIES),
    ("Window growths of our own TCP", "A profile names one.", GROWTHS),
    ("Papers", "`./fadelab papers NAME`.", PAPERS),
)

_BASES = {bool: "true or false", int: "whole number", float: "number", str: "text", Path: "path", dict: "mapping"}


def reference() -> str:
    """Return the page."""
    return "\n".join([_INTRODUCTION, *_parts(), *_plugins(), *_named()]).rstrip() + "\n"


def _parts() -> Iterator[str]:
    for place, part in _PARTS:
        yield f"## {f'`{place}`' if place else 'A scenario'}\n"
        yield f"{_sentence(part.__doc__)}\n"
        yield from _table(_keys_of_model(part))


def _plugins() -> Iterator[str]:
    for heading, named_at, options_at, registry in _KINDS:
        yield f"## {heading}\n"
        yield f"`{named_at}` is one of these.\n"
        for name, plugin in sorted(registry.items()):
            yield f"### `{name}` {{: #{named_at.replace('.', '-').lower()}-{name} }}\n"
            yield f"{_summary(plugin)}\n"
            options = getattr(plugin, "options", None)
            rows = [] if options is None else list(_keys_of_dataclass(options))
            if rows:
                place = options_at.format(key=getattr(plugin, "options_key", ""))
                yield f"Options, at `{place}`:\n"
                yield from _table(rows)


def _named() -> Iterator[str]:
    for heading, use, registry in _NAMED:
        yield f"## {heading}\n\n{use}\n\n| name | meaning |\n|---|---|"
        for name, plugin in sorted(registry.items()):
            yield f"| `{name}` | {_cell(_summary(plugin))} |"
        yield ""


def _table(rows: list[tuple[str, str, str, str]]) -> Iterator[str]:
    """Yield a table of keys: name, type, default, meaning."""
    yield "| key | value | default | meaning |\n|---|---|---|---|"
    for name, kind, default, meaning in rows:
        yield f"| `{name}` | {_cell(kind)} | {_cell(default)} | {_cell(meaning)} |"
    yield ""


def _keys_of_model(part: type[BaseModel]) -> list[tuple[str, str, str, str]]:
    comments = _comments(part)
    return [
        (name, _model_words(field), _model_default(field), comments.get(name, ""))
        for name, field in part.model_fields.items()
    ]


def _model_words(field: FieldInfo) -> str:
    annotation: Any = field.annotation
    return _words(Annotated[annotation, *field.metadata] if field.metadata else annotation)


def _model_default(field: FieldInfo) -> str:
    if field.default_factory is not None:
        return "empty"
    return "required" if field.default is PydanticUndefined else _default(field.default)


def _keys_of_dataclass(options: type[Any]) -> Iterator[tuple[str, str, str, str]]:
    hints, comments = hints_of(options), _comments(options)
    for field in dataclasses.fields(options):
        default = "required" if field.default is dataclasses.MISSING else _default(field.default)
        yield field.name, _words(hints[field.name]), default, comments.get(field.name, "")


def _default(value: Any) -> str:
    if value is None:
        return "none"
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


def _words(hint: Any) -> str:
    """Return a type in words, with its range."""
    if get_origin(hint) is Annotated:
        base, *limits = get_args(hint)
        return ", ".join([_words(base), *filter(None, map(_limit, _flat(limits)))])
    if get_origin(hint) is Literal:
        return " or ".join(f"`{value}`" for value in get_args(hint))
    if get_origin(hint) in (Union, types.UnionType):
        return " or ".join(_words(inner) for inner in get_args(hint) if inner is not type(None))
    if get_origin(hint) in (tuple, list, frozenset, set):
        inner = list(dict.fromkeys(_words(part) for part in get_args(hint) if part is not ...))
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


def _summary(plugin: Any) -> str:
    words = next((text for name in ("summary", "title") if (text := getattr(plugin, name, ""))), plugin.__doc__)
    return _sentence(str(words or ""))


def _sentence(text: str | None) -> str:
    """Return the first paragraph as a sentence."""
    words = " ".join((text or "").strip().split("\n\n")[0].split())
    return words[:1].upper() + words[1:] + ("" if words.endswith((".", ":")) or not words else ".")


def _cell(text: str) -> str:
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
    return " ".join(words)
