"""YAML of plain values: what it gives, and what it refuses in one line."""

from typing import Any

import pytest
import yaml

from common.plain_yaml import parse


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("a: 2e6\nb: [1.5, 0x10, ~, yes]\n", {"a": 2e6, "b": [1.5, 16, None, True]}),
        ("name: 2026-11-29", {"name": "2026-11-29"}),
        ("a: &x {b: 1}\nc: *x\nd: {<<: *x, e: 2}", {"a": {"b": 1}, "c": {"b": 1}, "d": {"b": 1, "e": 2}}),
    ],
)
def test_values(text: str, value: Any) -> None:
    assert parse(text) == value


def pages_of_aliases(pages: int) -> str:
    """A list of ten in a list of ten, and so on."""
    lines = ["- &a0 [0, 0, 0, 0, 0, 0, 0, 0, 0, 0]"]
    return "\n".join([*lines, *(f"- &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, pages))])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: !!timestamp x", "could not determine a constructor"),
        ("a: !!binary aGk=", "could not determine a constructor"),
        ("a: !!python/name:os.system ''", "could not determine a constructor"),
        ("a: 1\n1: a", r"a key is no text: put 1 in quotes\s.*line 2"),
        ("? {a: b}\n: c", "a key is no text: it has parts"),
        ("a: " + "9" * 5000, "a value cannot be read"),
        ("a: 0x_", "a value cannot be read"),
        ("a: 0x" + "f" * 6000, "more than 1000 bits"),
        ("a: 1" + ":59" * 3000, "more than 1000 bits"),
        ("a: 1" + ":59" * 200 + ".5", "a value cannot be read"),
        *((f"a: !!{value}", "a value cannot be read") for value in ("int", 'int ""', 'float ""', "bool x", "map [1]")),
        ('a: "\\UFFFFFFFF"', "invalid Unicode character"),
        ("a: &a [1, *a]", "an alias is a part of itself"),
        ("&a {b: {c: *a}}", "an alias is a part of itself"),
        (pages_of_aliases(9), "more than 100,000 values"),
        ("[" * 5000 + "]" * 5000, "nested too deeply"),
        # what composes values in C calls itself: a megabyte of these has ended the process
        ("[" * 1_000_000, "nested too deeply"),
        ("- " * 500_000, "nested too deeply"),
        ("a: &a " + "[" * 40 + "]" * 40 + "\nb: " + "[" * 40 + "*a" + "]" * 40, "nested too deeply"),
        ("a: 1\n---\nb: 2", "another document"),
        ("a: \x07", "control characters are not allowed"),
    ],
)
def test_what_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(yaml.YAMLError, match=complaint):
        parse(text)


def test_pages_that_are_large_enough_are_read() -> None:
    assert len(str(parse(pages_of_aliases(4)))) > 30_000
