"""Units, also in words. Internal times are whole nanoseconds; names of options and records end in their unit."""

from typing import Final

MS: Final = 1_000_000
SECOND: Final = 1_000_000_000


def ns(ms: float) -> int:
    """Return milliseconds as whole nanoseconds."""
    return round(ms * MS)


def number_of(count: int, noun: str) -> str:
    """Return a count in words: "1 gap", "2 gaps"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
