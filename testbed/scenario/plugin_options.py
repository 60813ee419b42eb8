"""The options of plugins as parts of a scenario: pydantic models made of the dataclasses that plugins declare."""

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from functools import reduce
from operator import or_
from typing import Any, Literal, Protocol, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, create_model, model_validator


class Part(BaseModel):
    """A piece of a scenario: unknown keys are errors, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Declared(Protocol):
    """What is needed of a plugin's declaration."""

    @property
    def name(self) -> str:
        """Its name in scenarios."""

    @property
    def options(self) -> type[Any]:
        """The dataclass of its options."""


P = TypeVar("P", bound=Part)


def parts_of(plugins: Iterable[Declared], tag: str, base: type[P]) -> Mapping[str, type[P]]:
    """Return a part for each plugin by its name; the key `tag` holds the name, the others are the plugin's options."""
    return {plugin.name: _part(plugin, tag, base) for plugin in plugins}


def union_of(parts: Mapping[str, type[Part]]) -> Any:
    """Return the type of whichever part is chosen."""
    return reduce(or_, parts.values())


def options_of(part: Part, options: type[Any]) -> Any:
    """Return the plugin's own options of a part."""
    names = [field.name for field in fields(options)]
    return options(**{name: getattr(part, name) for name in names})


def _part(plugin: Declared, tag: str, base: type[P]) -> type[P]:
    hints = get_type_hints(plugin.options, include_extras=True)
    entries: dict[str, Any] = {tag: (Literal[plugin.name], ...)}
    for field in fields(plugin.options):
        entries[field.name] = (hints[field.name], ... if field.default is MISSING else field.default)

    def check(part: P) -> P:
        options_of(part, plugin.options)
        return part

    validators: dict[str, Any] = {"check": model_validator(mode="after")(check)}
    made: type[P] = create_model(
        f"{plugin.options.__name__}Of{plugin.name.title().replace('-', '')}",
        __base__=base,
        __validators__=validators,
        **entries,
    )
    made.__doc__ = plugin.options.__doc__
    return made
