"""The style of the tables on the screen. Quick to import."""

from typing import Any

from rich import box
from rich.table import Table


def grid(title: str, *headings: str, **options: Any) -> Table:
    """Return a table without rows, in the style of all our tables."""
    # lines between eleven columns, and blanks on both sides of each, take half of a terminal
    style: dict[str, Any] = {"box": box.SIMPLE_HEAD, "padding": 0, "show_edge": False, "caption_justify": "left"}
    return Table(*headings, title=title, title_style="bold", header_style="bold", **style | options)
