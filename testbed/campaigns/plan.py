"""The plan of a campaign: its points and runs, fixed and hashed before the first run.

Rules kept
- The same campaign file, scenarios and traces give the same plan and the same hash, on every machine.
- The plan has everything that decides the results: scenarios with all defaults, seeds, hypotheses, the stopping rule,
  and the checksums of the files that scenarios name.
- Paths in a plan are relative to the campaign's folder, which has copies of the files.
"""

import hashlib
import itertools
import json
import math
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import Field, field_validator

from testbed.campaigns.file import Campaign, CampaignError, Settings, Strict, model_of, parse_campaign
from testbed.scenario.file import read_mapping, validate
from testbed.scenario.settings import ScenarioError, apply_value
from testbed.tiers import TIERS

FORMAT = 1
#: keys of a scenario whose values are paths
PATHS = ("path", "series")
#: folder of the copies, in the campaign's
FILES = "files"
_LONGEST_NAME = 60
#: a sweep beyond it is a slip: its plan alone would take minutes
_MOST_POINTS = 10_000
#: that a campaign plans at once: each has a row in memory
_MOST_RUNS = 1_000_000


@dataclass(frozen=True, slots=True)
class Point:
    """One combination of the sweep's values."""

    index: int
    name: str
    #: the swept keys and their values here
    settings: Mapping[str, Any]
    #: the scenario as in `scenario.yaml`, but for its seed
    scenario: Mapping[str, Any]

    @property
    def real_time(self) -> bool:
        """Whether its runs need the wall clock, and so a machine that does nothing else."""
        return not TIERS[self.scenario["tier"]].simulated and self.scenario.get("clock") != "virtual"

    @property
    def label(self) -> str:
        """The settings for people, with the last parts of their keys."""
        return words_of(self.settings) or str(self.scenario["name"])


@dataclass(frozen=True, slots=True)
class Run:
    """One replication of a point."""

    point: Point
    replication: int
    seed: int

    @property
    def name(self) -> str:
        """Its name, and that of its folder."""
        return f"{self.point.name}-s{self.seed}"

    @property
    def scenario(self) -> dict[str, Any]:
        """The values of its scenario."""
        return {**self.point.scenario, "seed": self.seed}


@dataclass(frozen=True)
class CampaignPlan:
    """A campaign's points and the checksums of their files."""

    campaign: Campaign
    points: tuple[Point, ...]
    #: SHA-256 by the file's path in the campaign's folder
    files: Mapping[str, str]

    def run(self, point: Point, replication: int) -> Run:
        """Return a replication, counted from 0."""
        seeds = self.campaign.seeds
        offset = 0 if seeds.paired else point.index * self.campaign.most
        return Run(point, replication, seeds.first + offset + replication)

    def document(self) -> dict[str, Any]:
        """Return the content of `plan.json`."""
        campaign = self.campaign.model_dump(mode="json")
        if self.campaign.stop is not None:
            # it has no meaning, and a campaign that gives it is refused
            del campaign["seeds"]["count"]
        if not self.campaign.agreement:
            # so that plans from before it keep their hash
            del campaign["agreement"]
        return {
            "format": FORMAT,
            "campaign": campaign,
            "points": [
                {"name": point.name, "settings": dict(point.settings), "scenario": dict(point.scenario)}
                for point in self.points
            ],
            "files": dict(self.files),
        }

    @cached_property
    def text(self) -> str:
        """The content of `plan.json`, whose SHA-256 is the plan's."""
        return json.dumps(self.document(), indent=1) + "\n"

    @cached_property
    def sha256(self) -> str:
        """The hash that names the plan."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def having(self, settings: Settings) -> list[Point]:
        """Return the points that have these settings."""
        return [point for point in self.points if settings.items() <= point.settings.items()]

    def pairs(self, greater: Settings, than: Settings) -> list[tuple[Point, Point]]:
        """Return the pairs of points with these settings that are equal in all others."""
        apart = greater.keys() | than.keys()

        def rest(point: Point) -> Hashable:
            return _frozen({key: value for key, value in point.settings.items() if key not in apart})

        others: dict[Hashable, list[Point]] = {}
        for point in self.having(than):
            others.setdefault(rest(point), []).append(point)
        return [(point, other) for point in self.having(greater) for other in others.get(rest(point), ())]


class _Point(Strict):
    """A point, as in `plan.json`."""

    name: str
    settings: Settings
    scenario: dict[str, Any]

    @field_validator("scenario")
    @classmethod
    def _check(cls, scenario: dict[str, Any]) -> dict[str, Any]:
        # what is read before a run validates it whole
        tier = scenario.get("tier")
        if not isinstance(tier, str) or tier not in TIERS:
            raise ValueError(f"tier must be one of {', '.join(TIERS)}")
        if not isinstance(scenario.get("name"), str):
            raise ValueError("it has no name")
        return scenario


class _Document(Strict):
    """A `plan.json`."""

    format: int
    campaign: dict[str, Any]
    points: Annotated[tuple[_Point, ...], Field(max_length=_MOST_POINTS)]
    files: dict[str, str]


def plan_from(document: dict[str, Any], where: str) -> CampaignPlan:
    """Return the plan of a `plan.json`, which may be a stranger's. Raises CampaignError."""
    if document.get("format") != FORMAT:
        raise CampaignError(f"{where}: has format {document.get('format')!r}, and this version reads {FORMAT}")
    found = model_of(_Document, document, where)
    points = tuple(Point(index, each.name, each.settings, each.scenario) for index, each in enumerate(found.points))
    plan = CampaignPlan(parse_campaign(found.campaign, where), points, found.files)
    _check(plan, where)
    _require_inside(plan, where)
    return plan


def is_inside(name: str) -> bool:
    """Return whether a path that a file of a folder states is one within that folder."""
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts and "\0" not in name


def check_names(stated: Iterable[str], where: str) -> None:
    """Raise CampaignError if a file of a folder names one outside."""
    for name in stated:
        if not is_inside(name):
            raise CampaignError(f"{where}: is refused: it names {name!r}, which is outside its folder")


def _require_inside(plan: CampaignPlan, where: str) -> None:
    """Raise CampaignError if the runs of a plan would read or write outside the campaign's folder."""
    check_names(plan.files, where)
    if elsewhere := [name for name in plan.files if PurePosixPath(name).parent != PurePosixPath(FILES)]:
        raise CampaignError(f"{where}: is refused: {elsewhere[0]!r} is not in {FILES}/")
    for point in plan.points:
        if PurePosixPath(point.name).name != point.name or "\0" in point.name:
            raise CampaignError(f"{where}: is refused: {point.name!r} is no name of a point")
        for path in _paths(point.scenario):
            if path not in plan.files:
                raise CampaignError(f"{where}: is refused: {point.name} reads {path!r}, which is none of its files")


def _paths(value: Any, key: str = "") -> Iterator[str]:
    """Yield the paths in a scenario's value."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _paths(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _paths(inner, key)
    elif key in PATHS and isinstance(value, str):
        yield value


def make_plan(campaign: Campaign, where: Path) -> tuple[CampaignPlan, dict[str, Path]]:
    """Return the plan of the campaign in file `where`, and the files to copy, by their paths in its folder.

    Raises FadelabError with one line for a scenario that is refused, and for hypotheses that fit no points.
    """
    sweep = campaign.sweep
    count = math.prod(map(len, sweep.grid.values())) * len(sweep.list)
    if count > _MOST_POINTS:
        raise CampaignError(f"{where}: sweep: has {count:,} points, {_MOST_POINTS:,} at most: make several campaigns")
    sources: dict[str, Path] = {}
    points = []
    swept = list(_settings(campaign))
    digits = len(str(len(swept) - 1))
    for index, settings in enumerate(swept):
        values = _scenario(campaign, settings, where)
        name = f"{index:0{digits}d}" + "".join(f"-{_slug(value)}" for value in settings.values())
        points.append(Point(index, name[:_LONGEST_NAME].rstrip("-."), settings, _moved(values, sources)))
    checksums = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in sorted(sources.items())}
    plan = CampaignPlan(campaign, tuple(points), checksums)
    _check(plan, where)
    return plan, sources


def _settings(campaign: Campaign) -> Iterator[Settings]:
    """Yield the settings of each point; the first key of the grid varies most slowly."""
    sweep = campaign.sweep
    for values in itertools.product(*sweep.grid.values()):
        for entry in sweep.list:
            yield {**dict(zip(sweep.grid, values, strict=True)), **entry}


def _scenario(campaign: Campaign, settings: Settings, where: Path) -> dict[str, Any]:
    """Return the values of a point's scenario, with all defaults."""
    base = where.parent
    changes = {**campaign.set, **settings}
    named = changes.pop("scenario", campaign.scenario)
    if named is None:
        raise CampaignError(f"{where}: scenario: is missing")
    if not isinstance(named, str | dict) or "\0" in named:
        raise CampaignError(f"{where}: scenario: is neither the name of a file nor a mapping")
    if isinstance(named, str):
        source = base / named
        raw, folder = read_mapping(source, "scenario"), source.parent
    else:
        raw, folder = json.loads(json.dumps(named)), base
    for key, value in changes.items():
        if key == "seed":
            raise CampaignError(f"{where}: seed cannot be set or swept: seeds has the seeds")
        apply_value(raw, key, json.loads(json.dumps(value)), base=base.resolve(), setting=f"{where}: {key}")
    made = validate(raw, f"{where}: {_in_words(settings)}", base=folder)
    values = made.model_dump(mode="json", exclude_none=True)
    del values["seed"]
    return values


def _moved(value: Any, sources: dict[str, Path], key: str = "") -> Any:
    """Return a scenario's value with each path replaced by that of its copy; `sources` gets the files to copy."""
    if isinstance(value, dict):
        return {name: _moved(inner, sources, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_moved(inner, sources) for inner in value]
    if key.rpartition(".")[2] not in PATHS or not isinstance(value, str):
        return value
    path = Path(value)
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read: {error.strerror}") from None
    name = f"{FILES}/{digest[:12]}-{path.name}"
    sources[name] = path
    return name


def _check(plan: CampaignPlan, where: Path | str) -> None:
    """Raise CampaignError for points that are the same, for settings that fit none, and for too many runs."""
    if len({_frozen(point.settings) for point in plan.points}) < len(plan.points):
        raise CampaignError(f"{where}: sweep: two points have the same settings")
    if len({point.name for point in plan.points}) < len(plan.points):
        raise CampaignError(f"{where}: points: two have the same name")
    at_once = {"seeds.count": plan.campaign.seeds.count}
    if (stop := plan.campaign.stop) is not None:
        at_once = {"stop.least": stop.least, "stop.batch": min(stop.batch, stop.most)}
    for key, replications in at_once.items():
        if (runs := len(plan.points) * replications) > _MOST_RUNS:
            raise CampaignError(f"{where}: {key}: makes {runs:,} runs, {_MOST_RUNS:,} at most: make several campaigns")
    compared = {f"hypotheses.{i}": (each.greater, each.than) for i, each in enumerate(plan.campaign.hypotheses)}
    compared |= {f"agreement.{i}": (each.points, each.to) for i, each in enumerate(plan.campaign.agreement)}
    for place, groups in compared.items():
        if not plan.pairs(*groups):
            raise CampaignError(f"{where}: {place}: no two points have these settings and are equal otherwise")
    for index, reference in enumerate(plan.campaign.reference):
        if not plan.having(reference.at):
            raise CampaignError(f"{where}: reference.{index}: no point has these settings")


def _frozen(value: Any) -> Hashable:
    """Return a value as one that equal values have, too, and that can be a key."""
    if isinstance(value, Mapping):
        return frozenset((key, _frozen(inner)) for key, inner in value.items())
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value


def words_of(settings: Mapping[str, Any]) -> str:
    """Return settings for people, with the last parts of their keys."""
    return " ".join(f"{key.rpartition('.')[2]}={_word(value)}" for key, value in settings.items())


def _in_words(settings: Settings) -> str:
    return " ".join(f"{key}={_word(value)}" for key, value in settings.items()) or "scenario"


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _slug(value: Any) -> str:
    """Return a value as a part of a folder's name."""
    text = _word(value)
    if "/" in text or text.endswith(".yaml"):
        text = Path(text).stem
    return re.sub(r"[^A-Za-z0-9.]+", "_", text).strip("_")
