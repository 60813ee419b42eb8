"""The options of plugins as parts of a scenario: pydantic models, made from the dataclasses of the plugins."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import cache, cached_property, reduce
from operator import or_
from typing import Annotated, Any, Generic, Literal, Protocol, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, create_model, model_validator
from pydantic.annotated_handlers import GetCoreSchemaHandler
from pydantic_core import CoreSchema

from common.compiled import hints_of


class Part(BaseModel):
    """A part of a scenario: unknown keys are errors, values are frozen, and numbers are finite."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    def option_values(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the values of a plugin's options by their names."""
        return {name: getattr(self, name) for name in names}


class Declared(Protocol):
    """A plugin's declaration, as far as this module uses it."""

    @property
    def name(self) -> str:
        """Its name in scenarios."""

    @property
    def options(self) -> type[Any]:
        """The dataclass of its options."""


P = TypeVar("P", bound=Part)


@dataclass(frozen=True, eq=False)
class Choice(Generic[P]):
    """Annotates a field of a scenario that holds the options of one plugin among several, each a part of its own.

    A scenario chooses the plugin by its name under the key `tag`, or by its name alone. A mapping without `tag` chooses
    `default`. A null key has its default. `lenient` ignores the keys that only other parts have, so that a user may
    change `tag` and keep the other keys.
    """

    plugins: Iterable[Declared]
    tag: str
    base: type[P]
    default: str | None = None
    lenient: bool = False

    @cached_property
    def parts(self) -> Mapping[str, type[P]]:
        """The parts by plugin; the key `tag` holds the plugin's name, the other keys are the plugin's options."""
        return {plugin.name: part_of(plugin.options, self.base, **{self.tag: plugin.name}) for plugin in self.plugins}

    def part(self, name: str, **options: Any) -> P:
        """Return the part of one plugin in the form of a scenario."""
        return self.parts[name](**{self.tag: name}, **options)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        union = reduce(or_, self.parts.values())
        return handler.generate_schema(Annotated[union, Discriminator(self.tag), BeforeValidator(self._chosen)])

    def _chosen(self, raw: Any) -> Any:
        if isinstance(raw, str):
            return {self.tag: raw}
        if not isinstance(raw, dict):
            return raw
        given = {key: value for key, value in raw.items() if value is not None}
        name = given.setdefault(self.tag, self.default)
        if name is None:
            del given[self.tag]
        if self.lenient and isinstance(name, str) and name in self.parts:
            known = {key for part in self.parts.values() for key in part.model_fields}
            foreign = known - self.parts[name].model_fields.keys()
            given = {key: value for key, value in given.items() if key not in foreign}
        return given


def options_of(part: Part, options: type[Any]) -> Any:
    """Return the plugin's options object from a part."""
    return options(**part.option_values([field.name for field in fields(options)]))


def part_of(options: type[Any], base: type[P], **tag: str) -> type[P]:
    """Return the part for a dataclass of plugin options; `tag` adds a key with one allowed value."""
    return _make(options, base, **tag)  # type: ignore[arg-type, return-value]


# each part is made once, so that unpickled parts have the same class
@cache
def _make(options: type[Any], base: type[Part], **tag: str) -> type[Part]:
    hints = hints_of(options)
    entries: dict[str, Any] = {key: (Literal[name], ...) for key, name in tag.items()}
    for field in fields(options):
        if field.name in base.model_fields:
            continue
        entries[field.name] = (hints[field.name], ... if field.default is MISSING else field.default)

    def check(part: Part) -> Part:
        options_of(part, options)
        return part

    def reduced(part: Part) -> tuple[Any, ...]:
        # pickle finds no module for the class: unpickling makes it again from classes that have one
        return _restored, (options, base, tag, dict(part), part.model_fields_set)

    validators: dict[str, Any] = {"check": model_validator(mode="after")(check)}
    made = create_model(
        options.__name__, __base__=base, __module__=options.__module__, __validators__=validators, **entries
    )
    made.__doc__ = options.__doc__
    made.__reduce__ = reduced  # type: ignore[method-assign, assignment]
    return made


def _restored(
    options: type[Any], base: type[Part], tag: Mapping[str, str], values: dict[str, Any], given: set[str]
) -> Part:
    return part_of(options, base, **tag).model_construct(given, **values)


def with_parts(name: str, parts: Mapping[str, type[Part]]) -> type[Part]:
    """Return a base class with each of `parts` under its key, by default with default options."""
    entries: dict[str, Any] = {key: (part, part()) for key, part in parts.items()}
    return create_model(name, __base__=Part, **entries)
