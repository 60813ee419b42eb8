"""YAML of plain values: null, booleans, numbers, text, lists, and mappings whose keys are text.

Dates are text here, and tags of other types are refused. Aliases count for what they stand for, so that a page of them
cannot fill the memory, and none may be a part of itself.
"""

import re
from typing import Any, Final

import yaml
from typing_extensions import override

_TYPES = ("null", "bool", "int", "float", "str", "seq", "map")
#: values and keys of a document
_MOST: Final = 100_000
#: more than any number of ours has, and few enough to be printed
_MOST_BITS: Final = 1024


class _Loader(yaml.SafeLoader):
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
        number: int = self.construct_yaml_int(node)
        if number.bit_length() > _MOST_BITS:
            raise ValueError(f"a whole number has more than {_MOST_BITS} bits")
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
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
)


def parse(text: str) -> Any:
    """Return what YAML text says. Raises yaml.YAMLError."""
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _measure(node, {})
        return loader.construct_document(node)
    except RecursionError:
        raise yaml.YAMLError("it is nested too deeply") from None
    except (ValueError, LookupError, TypeError, ArithmeticError, AttributeError) as error:
        # PyYAML's own, as of `!!bool x`
        raise yaml.YAMLError(f"a value cannot be read: {error}") from None
    finally:
        loader.dispose()


def _named(key: yaml.Node) -> str:
    return f"put {key.value} in quotes" if isinstance(key, yaml.ScalarNode) else "it has parts"


def _measure(node: yaml.Node, sizes: dict[int, int]) -> int:
    """Return the number of values and keys in a node, where an alias counts for what it stands for."""
    if id(node) not in sizes:
        # while it is 0, the node is being measured
        sizes[id(node)] = 0
        parts = []
        if isinstance(node, yaml.SequenceNode):
            parts = node.value
        elif isinstance(node, yaml.MappingNode):
            parts = [part for pair in node.value for part in pair]
        size = 1 + sum(_measure(part, sizes) for part in parts)
        if size > _MOST:
            raise yaml.YAMLError(f"it has more than {_MOST:,} values")
        sizes[id(node)] = size
    if sizes[id(node)] == 0:
        raise yaml.YAMLError("an alias is a part of itself")
    return sizes[id(node)]
