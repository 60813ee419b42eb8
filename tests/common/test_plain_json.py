"""JSON that may be a stranger's: what it gives, and what it refuses."""

from typing import Any

import pytest

from common.plain_json import object_of, parse


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("[]", []),
        ('{"a": [1.5, -3, null, true, "x"]}', {"a": [1.5, -3, None, True, "x"]}),
        ('"\\ud83d\\ude00 \\ud7ff"', "\U0001f600 \ud7ff"),
        ("[" * 60 + "]" * 60, eval("[" * 60 + "]" * 60)),
        (str(2**1000 - 1), 2**1000 - 1),
    ],
)
def test_values(text: str, value: Any) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "Expecting value"),
        ("{", "Expecting property name"),
        ("1" + "0" * 5000, "Exceeds the limit"),
        (str(2**1000), "more than 1000 bits"),
        ("[" * 61 + "]" * 61, "nested too deeply"),
        ('{"a": ' * 61 + "1" + "}" * 61, "nested too deeply"),
        ("[" * 100_000, "nested too deeply"),
        ('["\\ud800"]', "surrogates not allowed"),
        ('{"\\uDFFF": 1}', "surrogates not allowed"),
        ("\ufeff1", "BOM"),
    ],
)
def test_what_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse(text)


@pytest.mark.parametrize("text", ["1", "[]", "null", '"a"'])
def test_what_is_no_object(text: str) -> None:
    with pytest.raises(ValueError, match="holds no object"):
        object_of(text)
