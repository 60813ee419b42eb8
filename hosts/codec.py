"""Dataclasses as JSON and back, by the types of their fields.

| type | as JSON |
|---|---|
| dataclass | an object of its fields; those with a default may be missing |
| union of dataclasses | an object with one key, the kind (the class's name, as in `tcp_record`), and the dataclass |
| `Annotated[..., Kinds(...)]` | likewise, with the names of plugins as kinds |
| tuple, named tuple | an array |
| literal, number, string, truth value, None | itself |
| mapping | an object that is not looked into |

Rule kept: unknown kinds, unknown or missing fields and values of other types raise ValueError in one line, which names
the field. Values in range are the business of the dataclass.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from re import sub
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Protocol, Union, get_args, get_origin

from common.compiled import hints_of


class Codec(NamedTuple):
    """The ways of one type to JSON and back; `decode` also takes the value's name, for errors."""

    encode: Callable[[Any], Any]
    decode: Callable[[Any, str], Any]


class _Plugin(Protocol):
    @property
    def options(self) -> type[Any]: ...


@dataclass(frozen=True, eq=False)
class Kinds:
    """Annotates a type whose values are options of these plugins."""

    plugins: Mapping[str, _Plugin]


def kind_of(message: type[Any]) -> str:
    """Return the kind of a class: its name in snake case."""
    return sub(r"(?<=[a-z])(?=[A-Z])", "_", message.__name__).lower()


@cache
def codec(hint: Any) -> Codec:
    """Return the codec of a type."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        for note in args[1:]:
            if isinstance(note, Kinds):
                return _tagged({name: plugin.options for name, plugin in note.plugins.items()})
        return codec(args[0])
    if isinstance(hint, type) and is_dataclass(hint):
        return _fields(hint)
    if origin in (Union, UnionType):
        return _union(args)
    if origin is Literal:
        return Codec(_same, _literal(args))
    if origin is tuple and args[1:] == (...,):
        return _array(codec(args[0]))
    if origin is tuple:
        return _row(tuple, [codec(arg) for arg in args])
    if isinstance(hint, type) and issubclass(hint, tuple):
        return _row(hint._make, [codec(field) for field in hints_of(hint).values()])  # type: ignore[attr-defined]
    return Codec(_same, _scalar(dict if origin is not None else hint))


def _same(value: Any) -> Any:
    return value


def _scalar(*types: type[Any]) -> Callable[[Any, str], Any]:
    name = " or ".join({NoneType: "null", dict: "an object"}.get(kind, kind.__name__) for kind in types)
    # an integer is a number, and a truth value is none
    taken = {*types, int} if float in types else {*types}

    def decode(value: Any, at: str) -> Any:
        if type(value) not in taken:
            raise ValueError(f"{at} is {value!r}: must be {name}")
        return value

    return decode


def _literal(values: tuple[Any, ...]) -> Callable[[Any, str], Any]:
    def decode(value: Any, at: str) -> Any:
        if value not in values:
            raise ValueError(f"{at} is {value!r}: must be {' or '.join(map(str, values))}")
        return value

    return decode


def _array(item: Codec) -> Codec:
    def decode(value: Any, at: str) -> Any:
        return tuple([item.decode(each, at) for each in _list(value, at)])

    return Codec(lambda value: [item.encode(each) for each in value], decode)


def _row(make: Callable[[list[Any]], Any], items: list[Codec]) -> Codec:
    def decode(value: Any, at: str) -> Any:
        if len(_list(value, at)) != len(items):
            raise ValueError(f"{at} is {value!r}: must have {len(items)} values")
        return make([item.decode(each, at) for item, each in zip(items, value, strict=True)])

    return Codec(lambda value: [item.encode(each) for item, each in zip(items, value, strict=True)], decode)


def _list(value: Any, at: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{at} is {value!r}: must be an array")
    return value


def _union(kinds: tuple[Any, ...]) -> Codec:
    parts = [kind for kind in kinds if kind is not NoneType]
    if len(parts) == len(kinds) and all(map(is_dataclass, parts)):
        return _tagged({kind_of(part): part for part in parts})
    if len(parts) > 1:
        return Codec(_same, _scalar(*kinds))
    inner = codec(parts[0])
    return Codec(
        lambda value: None if value is None else inner.encode(value),
        lambda value, at: None if value is None else inner.decode(value, at),
    )


def _tagged(kinds: Mapping[str, type[Any]]) -> Codec:
    names = {kind: name for name, kind in kinds.items()}
    codecs = {name: _fields(kind) for name, kind in kinds.items()}

    def decode(value: Any, at: str) -> Any:
        if not isinstance(value, dict) or len(value) != 1:
            raise ValueError(f"{at} is {value!r}: must be an object with one key, its kind")
        [(name, body)] = value.items()
        if name not in codecs:
            raise ValueError(f"{at} of kind {name!r}: choose from {', '.join(kinds)}")
        return codecs[name].decode(body, name)

    def encode(value: Any) -> Any:
        name = names[type(value)]
        return {name: codecs[name].encode(value)}

    return Codec(encode, decode)


def _fields(kind: type[Any]) -> Codec:
    hints = hints_of(kind)
    codecs = {field.name: codec(hints[field.name]) for field in fields(kind)}
    needed = {field.name for field in fields(kind) if field.default is field.default_factory is MISSING}

    def decode(value: Any, at: str) -> Any:
        if not isinstance(value, dict):
            raise ValueError(f"{at} is {value!r}: must be an object")
        if unknown := value.keys() - codecs.keys():
            raise ValueError(f"{at} has no {', '.join(sorted(unknown))}")
        if missing := needed - value.keys():
            raise ValueError(f"{at} lacks {', '.join(sorted(missing))}")
        return kind(**{key: codecs[key].decode(each, f"{at}.{key}") for key, each in value.items()})

    def encode(value: Any) -> dict[str, Any]:
        return {key: part.encode(getattr(value, key)) for key, part in codecs.items()}

    return Codec(encode, decode)
