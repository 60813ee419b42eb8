"""The declarations of tiers, and that nothing else compares a tier's name."""

import ast
from collections.abc import Iterator

import pytest

from testbed.paths import root
from testbed.tiers import TIERS, Tier, tier_with
from tests.test_arrows import python_files

#: names that mean something else elsewhere: `model` is the key of an error model, too
AMBIGUOUS = {"model"}
PRODUCT = ("testbed", "dashboard", "hosts", "flowgraphs", "linklayer", "channel", "telemetry", "experiments", "common")


def compared(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Names of tiers with which code compares, or by which it looks something up, as (line, name)."""
    for node in ast.walk(tree):
        found: list[ast.expr | None] = []
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            about_tiers = any("tier" in ast.unparse(side).lower() for side in sides)
            found = [inner for side in sides for inner in ast.walk(side) if isinstance(inner, ast.expr)]
            found = [each for each in found if about_tiers or named(each) not in AMBIGUOUS]
        elif isinstance(node, ast.MatchValue):
            found = [node.value]
        elif isinstance(node, ast.Dict):
            found = [key for key in node.keys if named(key) not in AMBIGUOUS]
        elif isinstance(node, ast.Set | ast.Subscript):
            parts = node.elts if isinstance(node, ast.Set) else [node.slice]
            found = [part for part in parts if named(part) not in AMBIGUOUS]
        for each in found:
            if (name := named(each)) in TIERS:
                yield each.lineno, name  # type: ignore[union-attr]


def named(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


@pytest.mark.slow
def test_no_other_code_compares_the_name_of_a_tier() -> None:
    files = [path for path in python_files() if path.startswith(PRODUCT) and not path.startswith("testbed/tiers/")]
    assert len(files) > 300
    found = [
        f"{path}:{line}: {name}" for path in files for line, name in compared(ast.parse((root() / path).read_text()))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("scenario.tier == 'model'", True),
        ("if 'usrp' != tier: pass", True),
        ("scenario.tier in ('vusrp', 'usrp')", True),
        ("COSTS = {'vusrp': 1}", True),
        ("x = PLACES['emulated']", True),
        ("match tier:\n    case 'model': pass", True),
        # other uses of the words
        ("errors = {'model': 'none'}", False),
        ("load(path, tier='model')", False),
        ("tier.air == 'virtual'", False),
    ],
)
def test_a_comparison_is_seen(source: str, seen: bool) -> None:
    assert bool(list(compared(ast.parse(source)))) is seen


@pytest.mark.parametrize("tier", TIERS.values(), ids=list(TIERS))
def test_a_declaration_agrees_with_itself(tier: Tier) -> None:
    assert tier.clocks
    assert not tier.simulated or tier.clocks == ("virtual",)
    # only samples through an air cross without a known fate
    assert tier.fates or tier.radio
    assert tier.demo is None or (root() / "scenarios" / tier.demo).is_file()


def test_each_air_has_a_tier() -> None:
    assert [tier_with(air) for air in ("virtual", "real")] == ["vusrp", "usrp"]
