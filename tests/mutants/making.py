"""Draw mutants of the program with cosmic-ray's operators, and print them as JSON, one a line.

    PYTHON -m tests.mutants.making SEED COUNT

Runs in an environment that has cosmic-ray, which is not among the project's requirements (README.md).

Rules, stated before anything was drawn
- Each mutant that the operators without arguments can make in `FOLDERS` is as likely as every other.
- These are no mutants: a text that does not compile, or compiles to the same code; a change in an annotation, or below
  `if TYPE_CHECKING`; the removal of a decorator that is there for mypy and mypyc (`_SILENT`); a change of the `*` in a
  signature, which cosmic-ray takes for a product; `slots` of a dataclass, which is a matter of memory; its `kw_only`,
  for mypy has seen that all calls name their arguments; the `example` of a plugin, which tests alone use; `is` and
  `is not` in place of a comparison of values, for numbers are identical or not by CPython's leave; `==` in place of
  `is` (`!=` of `is not`) before a name in capitals, a constant or an enumeration's member; `+` or `^` in place of `|`
  between two names in capitals, flags whose bits are different.
"""

import ast
import importlib
import json
import random
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FOLDERS = (
    "linklayer", "channel", "hosts/tcp", "hosts/engine", "testbed/results", "testbed/campaigns", "testbed/reports",
    "testbed/exports", "testbed/scenario",
)  # fmt: skip
_IDENTITY = re.compile(r"core/ReplaceComparisonOperator_(Eq|NotEq|Lt|LtE|Gt|GtE)_(Is|IsNot)$")
_MEMBER = re.compile(r"core/ReplaceComparisonOperator_(Is_Eq|IsNot_NotEq)$")
_UNION = re.compile(r"core/ReplaceBinaryOperator_BitOr_(Add|BitXor)$")
_SILENT = {"override", "final", "overload", "abstractmethod", "mypyc_attr", "trait"}

_Place = tuple[int, int]


def _silent(text: str) -> list[tuple[_Place, _Place]]:
    """Return the parts of a file in which no change is a mutant: from line and column to line and column."""
    found: list[ast.AST] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            for decorator in node.decorator_list:
                last = decorator.func if isinstance(decorator, ast.Call) else decorator
                if (last.attr if isinstance(last, ast.Attribute) else getattr(last, "id", "")) in _SILENT:
                    found.append(decorator)
        if isinstance(node, ast.keyword) and node.arg in ("slots", "kw_only", "example"):
            found.append(node)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            found.append(node)
        for part in ("annotation", "returns"):
            found += [annotation] if (annotation := getattr(node, part, None)) is not None else []
    return [
        # with the sign in front of a decorator
        ((node.lineno, max(0, node.col_offset - 1)), (node.end_lineno, node.end_col_offset))  # type: ignore[attr-defined]
        for node in found
    ]


def _places(root: Path) -> Iterator[tuple[str, str, int, _Place]]:
    """Yield file, operator, occurrence and place of all mutants."""
    plugins, trees = (importlib.import_module(f"cosmic_ray.{name}") for name in ("plugins", "ast"))
    operators = {name: plugins.get_operator(name) for name in sorted(plugins.operator_names())}
    made: dict[str, Any] = {
        name: make() for name, make in operators.items() if not make.arguments() and not _IDENTITY.match(name)
    }
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            silent = _silent(text)
            nodes = list(trees.ast_nodes(trees.get_ast(text)))
            for name, operator in made.items():
                occurrence = 0
                for node in nodes:
                    for start, _ in operator.mutation_positions(node):
                        is_marker = getattr(node.parent, "type", "") == "parameters"
                        if _UNION.match(name):
                            # the leaves on both sides
                            around = node.get_previous_leaf().value, node.get_next_leaf().value
                            is_marker |= all(leaf.isupper() for leaf in around)
                        if _MEMBER.match(name):
                            [right] = (after for it, after in pairwise(node.children) if it.start_pos == start)
                            is_marker |= right.get_code().strip().rpartition(".")[2].isupper()
                        if not is_marker and not any(first <= start < last for first, last in silent):
                            yield str(path.relative_to(root)), name, occurrence, start
                        occurrence += 1


def _mutated(text: str, name: str, occurrence: int) -> str | None:
    """Return the text of a mutant; None where it is none."""
    mutating, plugins = (importlib.import_module(f"cosmic_ray.{name}") for name in ("mutating", "plugins"))
    try:
        changed: str | None = mutating.mutate_code(text, plugins.get_operator(name)(), occurrence)
    except AttributeError:
        # cosmic-ray takes the exception of a handler for a bare name
        return None
    if changed is None:
        return None
    try:
        same = ast.dump(ast.parse(changed)) == ast.dump(ast.parse(text))
        compile(changed, name, "exec")
    except (SyntaxError, ValueError):
        return None
    return None if same else changed


def main(arguments: Sequence[str]) -> None:
    """Print the mutants."""
    seed, count = int(arguments[0]), int(arguments[1])
    places = list(_places(ROOT))
    random.Random(seed).shuffle(places)
    print(f"{len(places)} mutants", file=sys.stderr)
    for file, name, occurrence, (line, column) in places:
        if not count:
            return
        text = (ROOT / file).read_text(encoding="utf-8")
        if (changed := _mutated(text, name, occurrence)) is not None:
            count -= 1
            print(json.dumps({"file": file, "operator": name, "line": line, "column": column, "text": changed}))


if __name__ == "__main__":
    main(sys.argv[1:])
