"""YAML of plain values that may be a stranger's: null, booleans, numbers, text, lists, mappings whose keys are text.

Dates are text here, and tags of other types are refused. Aliases count for what they stand for, so that a page of them
cannot fill the memory, and none may be a part of itself. The parser is the one in C, ten times as fast; what composes
values of its events takes memory for each and calls itself once for each level, which may end the process: events are
counted before.
"""

import re
from typing import Any, Final

import yaml
from typing_extensions import override

from common.plain_json import MOST_BITS, MOST_DEPTH

_TYPES = ("null", "bool", "int", "float", "str", "seq", "map")
#: values and keys of a document
_MOST: Final = 100_000


class _Loader(yaml.CSafeLoader):
    """Reads 2e6 as a number; in YAML 1.1 it is a string."""

    @override
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        self.flatten_mapping(node)
        for key, _ in node.value:
            if key.tag != "tag:yaml.org,2002:str":
                raise yaml.constructor.ConstructorError(None, None, f"a key is no text: {_named(key)}", key.start_mark)
        return super().construct_mapping(node, deep=deep)

    def construct_int(self, node: yaml.ScalarNode) -> int:
        """Return a whole number. Raises ValueError."""
        # to read much longer ones takes time with the square of their length
        if len(node.value) > MOST_BITS:
            raise ValueError(f"a whole number has more than {MOST_BITS} bits")
        number: int = self.construct_yaml_int(node)
        if number.bit_length() > MOST_BITS:
            raise ValueError(f"a whole number has more than {MOST_BITS} bits")
        return number


_Loader.yaml_constructors = {
    tag: construct
    for tag, construct in yaml.SafeLoader.yaml_constructors.items()
    if tag is None or tag.removeprefix("tag:yaml.org,2002:") in _TYPES
}
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_int)
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in known if tag != "tag:yaml.org,2002:timestamp"]
    for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
)


def parse(text: str) -> Any:
    """Return what YAML text says. Raises yaml.YAMLError."""
    try:
        _require_few(text)
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            _measure(node, {})
            return loader.construct_document(node)
        finally:
            loader.dispose()
    except (ValueError, LookupError, TypeError, ArithmeticError, AttributeError) as error:
        # PyYAML's own, as of `!!bool x`
        raise yaml.YAMLError(f"a value cannot be read: {error}") from None


def _named(key: yaml.Node) -> str:
    return f"put {key.value} in quotes" if isinstance(key, yaml.ScalarNode) else "it has parts"


def _require_few(text: str) -> None:
    """Raise YAMLError for too many values, an alias for one, and too deep ones."""
    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=_Loader)):
        if count > 2 * _MOST:
            raise yaml.YAMLError(f"it has more than {_MOST:,} values")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MOST_DEPTH:
                raise yaml.YAMLError("it is nested too deeply")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _measure(node: yaml.Node, known: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """Return the number of values and keys in a node, where an alias counts for what it stands for, and its depth."""
    if id(node) not in known:
        # while it is 0, the node is being measured
        known[id(node)] = 0, 0
        parts = []
        if isinstance(node, yaml.SequenceNode):
            parts = node.value
        elif isinstance(node, yaml.MappingNode):
            parts = [part for pair in node.value for part in pair]
        size, depth = 1, 0
        for part in parts:
            inner, below = _measure(part, known)
            size, depth = size + inner, max(depth, below + 1)
            if size > _MOST:
                raise yaml.YAMLError(f"it has more than {_MOST:,} values")
            if depth > MOST_DEPTH:
                raise yaml.YAMLError("it is nested too deeply")
        known[id(node)] = size, depth
    if not known[id(node)][0]:
        raise yaml.YAMLError("an alias is a part of itself")
    return known[id(node)]
