"""A past run, or two side by side, as one HTML file for people without this program.

    details, curves ─► saved_page ─► a file that needs nothing beside it

Rules kept: the file loads nothing, from no server and no disk, and its own policy forbids it; what it says of the
machine is versions, processor and kernel, no command line, and of paths the last part alone.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from dashboard import compare, plots
from dashboard.curves import Picture
from dashboard.delays import delays
from linklayer.schemes import SCHEMES

#: what a manifest says that others need to make the run again, or to judge it
_KEPT = ("scenario", "tier", "clock", "seed", "queue", "started", "epoch", "versions", "processor", "cpus", "machine")
#: a path with a folder in it, in any text; `5 Mbit/s` and `1/2` are none
_PATH = re.compile(r"(?<![\w./…])(?:~|\.{1,2})?/(?:[^\s'\"/,;{}\[\]]+/)+([^\s'\"/,;{}\[\]]+)")
#: a person's own folder, whose last part says who it is
_HOME = re.compile(r"(?<![\w./…])/(?:home/[^\s'\"/,;{}\[\]]+|root)(?![^\s'\",;{}\[\]])")
#: a number has as many digits that count
_DIGITS = 4
_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
_CARDS = 6
_HERE = Path(__file__).parent
_TEMPLATES = Environment(
    loader=FileSystemLoader(_HERE / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
)


@dataclass(frozen=True, slots=True)
class Kept:
    """One run to be saved."""

    name: str
    #: as of `Store.detail`
    detail: Mapping[str, Any]
    scenario: Mapping[str, Any]
    picture: Picture


def saved_page(runs: Sequence[Kept], version: str) -> bytes:
    """Return the HTML file of one run or two; `version` is fadelab's."""
    labels = [_label(run) for run in runs]
    if len(set(labels)) < len(labels):
        labels = [f"{letter}, {label}" for letter, label in zip("AB", labels, strict=True)]
    charts = list(dict.fromkeys(key for run in runs for key in run.picture.charts()))
    rows = compare.figures(*(run.detail["summary"] for run in runs), *[None] * (2 - len(runs)))
    table = [
        (row["figure"], [_shown(row[side], row["unit"]) for side in "ab"[: len(runs)]], _ratio(row["ratio"]))
        for row in rows
    ]
    waits = [(label, delays(run.detail["summary"], run.picture)) for label, run in zip(labels, runs, strict=True)]
    differences = compare.differences(*(run.scenario for run in runs)) if len(runs) == 2 else []
    page = _TEMPLATES.get_template("saved.html").render(
        title=" and ".join(run.name for run in runs),
        palette=Markup((_HERE / "static" / "palette.css").read_text()),
        style=Markup((_HERE / "templates" / "saved.css").read_text()),
        runs=[_said(run, label) for run, label in zip(runs, labels, strict=True)],
        several=len(runs) == 2,
        cards=table[:_CARDS],
        table=table,
        differences=[(each["key"], *(_without_paths(json.dumps(each[side])) for side in "ab")) for each in differences],
        figure=_figure(runs, labels, charts),
        delays=[
            (label, row["label"], f"{row['n']:,}", [_shown(row[place], "ms") for place in plots.PERCENTILES])
            for label, rows in waits
            for row in rows
        ],
        delays_figure=_inlined(plots.draw_delays(waits, "svg"), "Delays under load", "delays")
        if any(rows for _, rows in waits)
        else Markup(),
        version=version,
    )
    return page.encode()


def _label(run: Kept) -> str:
    scheme = run.detail["info"]["scheme"] or run.name
    return (SCHEMES[scheme].label if scheme in SCHEMES else "") or scheme


def _said(run: Kept, label: str) -> dict[str, Any]:
    info, manifest = run.detail["info"], run.detail["manifest"] or {}
    summary = run.detail["summary"]
    versions = manifest.get("versions")
    facts = {
        "tier": info["tier"],
        "link": label,
        "TCP": info["tcp"],
        "seed": info["seed"],
        "started": manifest.get("started"),
        **{str(name): number for name, number in (versions.items() if isinstance(versions, dict) else ())},
    }
    marks = [
        words
        for words, holds in (
            ("cut short", summary is not None and not summary.get("finished", True)),
            ("late: this machine did not keep the clock", summary is not None and not summary.get("on_time", True)),
            ("corrupt", summary is not None and not summary.get("intact", True)),
            ("no result", summary is None),
            ("changed by hand", bool(summary and summary.get("changes"))),
        )
        if holds
    ]
    kept = {key: manifest[key] for key in _KEPT if key in manifest}
    return {
        "name": run.name,
        "label": label,
        "facts": [(name, str(value)) for name, value in facts.items() if value not in (None, "")],
        "marks": [*marks, *([_without_paths(run.detail["problem"])] if run.detail["problem"] else [])],
        "scenario": _without_paths(run.detail["scenario"] or ""),
        "manifest": _without_paths(json.dumps(kept, indent=2, ensure_ascii=False)),
        "summary": _without_paths(json.dumps(summary, indent=2, ensure_ascii=False)),
    }


def _figure(runs: Sequence[Kept], labels: Sequence[str], charts: Sequence[str]) -> Markup:
    """Return the charts; empty without records."""
    if not charts:
        return Markup()
    drawn = [plots.Drawn(label, run.picture) for label, run in zip(labels, runs, strict=True)]
    return _inlined(plots.draw(drawn, charts, "", "svg"), "All charts over time", "charts")


def _inlined(svg: bytes, label: str, name: str) -> Markup:
    """Return a picture as part of a page; `name` tells its elements from those of others."""
    picture = svg.decode()
    # matplotlib says there who made it, with addresses
    picture = re.sub(r"<metadata>.*?</metadata>", "", picture[picture.index("<svg") :], flags=re.DOTALL)
    picture = re.sub(r'( id="|href="#|url\(#)', rf"\1{name}-", picture)
    return Markup(picture.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1))


def _without_paths(text: str) -> str:
    """Return a text in which the folders of paths are left out."""
    return _PATH.sub(r"…/\1", _HOME.sub("…", text))


def _shown(value: float | None, unit: str) -> str:
    if value is None:
        return "–"
    if unit == "bit/s":
        factor, prefix = next(((size, prefix) for size, prefix in _PREFIXES if abs(value) >= size), (1.0, ""))
        return f"{value / factor:.{_DIGITS}g} {prefix}{unit}"
    # a number of things is whole
    number = f"{value:,}" if isinstance(value, int) else f"{value:.{_DIGITS}g}"
    return f"{number} {unit}".strip()


def _ratio(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.3g} ×"
