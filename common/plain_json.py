"""JSON that may be a stranger's, within limits that what works on its values can take."""

import json
import re
from typing import Any, Final

#: more than any number of ours has, and few enough to be a float and to be printed
MOST_BITS: Final = 1000
#: for files of one run; of small values a gigabyte of memory
MOST_CHARACTERS: Final = 1 << 27
#: for files that have an entry for each frame, or each run of a campaign
LONGEST: Final = 1 << 31
#: more than any file of ours has, and few enough for what calls itself once for each level
MOST_DEPTH: Final = 60
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")


def parse(text: str, most: int = MOST_CHARACTERS) -> Any:
    """Return what JSON text says.

    Raises ValueError for other text, one of more than `most` characters, larger numbers and deeper values, and for half
    of a surrogate pair, which is no text that can be written.
    """
    if len(text) > most:
        raise ValueError(f"it has more than {most:,} characters")
    try:
        found = json.loads(text, parse_int=_whole)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    _require_depth(found)
    if _SURROGATE.search(text):
        json.dumps(found, ensure_ascii=False).encode()
    return found


def object_of(text: str, most: int = MOST_CHARACTERS) -> dict[str, Any]:
    """Return the object that JSON text holds. Raises ValueError for other values, and as `parse` does."""
    found = parse(text, most)
    if not isinstance(found, dict):
        raise ValueError("it holds no object")
    return found


def _whole(digits: str) -> int:
    number = int(digits)
    if number.bit_length() > MOST_BITS:
        raise ValueError(f"a whole number has more than {MOST_BITS} bits")
    return number


def _require_depth(found: object) -> None:
    level = [found] if isinstance(found, dict | list) else []
    for _ in range(MOST_DEPTH + 1):
        if not level:
            return
        values = (value for each in level for value in (each.values() if isinstance(each, dict) else each))
        level = [value for value in values if isinstance(value, dict | list)]
    raise ValueError("it is nested too deeply")
