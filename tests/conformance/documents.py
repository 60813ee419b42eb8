"""What docs/scenarios.md has to say of each plugin."""

from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Protocol

DOCS = Path(__file__).parents[2] / "docs"


class Summarised(Protocol):
    """The parts of a declaration that a table shows."""

    @property
    def name(self) -> str: ...

    @property
    def summary(self) -> str: ...

    @property
    def options(self) -> type[Any]: ...


def check_row(plugin: Summarised) -> None:
    """Find the plugin's row: name, options with their defaults in brackets, summary."""
    rows = [line.split("|") for line in (DOCS / "scenarios.md").read_text().splitlines() if line.startswith("| `")]
    [keys] = [row[2] for row in rows if f"`{plugin.name}`" in row[1] and row[3].strip() == plugin.summary]
    for field in fields(plugin.options):
        assert f"`{field.name}`" in keys
        if field.default is not MISSING:
            after = keys.split(f"`{field.name}`", 1)[1].lstrip()
            # None stands for a default that is computed: the table says from what
            default = "" if field.default is None else _written(field.default)
            assert after.startswith((f"({default}", f"(`{default}`")), (field.name, default)


def _written(value: Any) -> str:
    """A value as YAML has it."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(list(value)) if isinstance(value, tuple) else str(value)
