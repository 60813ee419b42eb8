"""A lab's report: what was tested, on which radios and which computer, and each figure beside its bound.

`--report FILE` writes one HTML file, with the drawings in it. A test gives its figures to the fixture `figures`, which
compares them, too.
"""

import base64
import html
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from testbed.results.store import processor
from testbed.sources import fadelab_version

_STYLE = """body { font: 15px sans-serif; max-width: 75em; margin: 2em auto; padding: 0 1em; }
table { border-collapse: collapse; margin: 1em 0; }
th, td { border: 1px solid #bbb; padding: .25em .6em; text-align: left; }
.failed, .error { background: #fbb; } .skipped { background: #eee; } img { max-width: 100%; }"""


@dataclass(frozen=True, slots=True)
class Figure:
    test: str
    name: str
    value: float
    unit: str
    least: float | None
    most: float | None

    @property
    def holds(self) -> bool:
        return (self.least is None or self.value >= self.least) and (self.most is None or self.value <= self.most)

    @property
    def bound(self) -> str:
        least = f"{self.least:.4g} ≤" if self.least is not None else ""
        return f"{least} … {f'≤ {self.most:.4g}' if self.most is not None else ''}".strip(" …")


@dataclass(slots=True)
class Report:
    """What a session has found so far."""

    command: str
    figures: list[Figure] = field(default_factory=list)
    #: by test: its outcome, its duration in seconds, and why it was skipped or failed
    outcomes: dict[str, tuple[str, float, str]] = field(default_factory=dict)
    #: by end of the link: what the device says of itself
    radios: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    drawings: list[Path] = field(default_factory=list)

    def write(self, path: Path) -> None:
        """Write the report as one HTML file."""
        counts = dict.fromkeys(("passed", "failed", "error", "skipped"), 0)
        for outcome, _, _ in self.outcomes.values():
            counts[outcome] += 1
        summary = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
        parts = [
            f"<!doctype html><meta charset=utf-8><title>fadelab: radio tests</title><style>{_STYLE}</style>",
            f"<h1>Radio tests: {summary}</h1>",
            "<h2>Computer</h2>",
            _table(("", ""), list(self._about().items())),
            *(
                f"<h2>Radio {html.escape(end)}</h2>" + _table(("", ""), list(about.items()))
                for end, about in self.radios.items()
            ),
            "<h2>Figures</h2>",
            _table(
                ("test", "figure", "measured", "bound"),
                [(one.test, one.name, f"{one.value:.4g} {one.unit}", one.bound) for one in self.figures],
                ["" if one.holds else "failed" for one in self.figures],
            ),
            *(f'<img src="data:image/png;base64,{_encoded(path)}">' for path in self.drawings if path.exists()),
            "<h2>Tests</h2>",
            _table(
                ("test", "outcome", "s", "reason"),
                [(test, outcome, f"{seconds:.1f}", why) for test, (outcome, seconds, why) in self.outcomes.items()],
                [outcome for outcome, _, _ in self.outcomes.values()],
            ),
        ]
        path.write_text("\n".join(parts) + "\n")

    def _about(self) -> dict[str, str]:
        from gnuradio import gr

        uhd = subprocess.run(("uhd_config_info", "--version"), capture_output=True, text=True, check=False)
        return {
            "command": self.command,
            "time": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
            "fadelab": fadelab_version(),
            "UHD": uhd.stdout.strip(),
            "GNU Radio": gr.version(),
            "Python": platform.python_version(),
            "system": f"{platform.system()} {platform.release()}",
            "processor": f"{os.cpu_count()} × {processor()}",
        }


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def _table(heading: Sequence[str], rows: Iterable[Sequence[Any]], classes: Sequence[str] = ()) -> str:
    def cells(kind: str, row: Sequence[Any]) -> str:
        return "".join(f"<{kind}>{html.escape(str(cell))}</{kind}>" for cell in row)

    rows = list(rows)
    named = list(classes) or [""] * len(rows)
    body = "".join(f'<tr class="{name}">{cells("td", row)}</tr>' for row, name in zip(rows, named, strict=True))
    return f"<table><tr>{cells('th', heading)}</tr>{body}</table>"
