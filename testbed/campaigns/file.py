"""The schema of a campaign file. docs/campaigns.md describes every key."""

from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from testbed.errors import FadelabError
from testbed.results.metrics import check_metric
from testbed.results.statistics import Statistic, least_n
from testbed.scenario.file import read_mapping


class CampaignError(FadelabError):
    """A campaign that is not valid, or a folder that is not of this campaign."""


class Strict(BaseModel):
    """A mapping that has these keys and no others."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _metric(name: object) -> str:
    if not isinstance(name, str):
        raise ValueError(f"{name!r} is no name of a metric")
    check_metric(name)
    return name


Metric = Annotated[str, BeforeValidator(_metric)]
Settings = dict[str, Any]
#: the replications of a point: their statistics take memory with the square of the number
_MOST_REPLICATIONS = 10_000
Replications = Annotated[int, Field(ge=1, le=_MOST_REPLICATIONS)]
Confidence = Annotated[float, Field(gt=0, le=0.999999)]
_Model = TypeVar("_Model", bound=BaseModel)


class Sweep(Strict):
    """The points: every combination of the grid's values, at each entry of the list."""

    grid: dict[str, Annotated[list[Any], Field(min_length=1)]] = {}
    list: Annotated[tuple[Settings, ...], Field(min_length=1)] = ({},)


class Seeds(Strict):
    """The replications of each point."""

    first: Annotated[int, Field(ge=0)] = 1
    #: of each point; not with `stop`
    count: Replications = 10
    #: whether replication n has the same seed at all points
    paired: bool = True


class Stop(Strict):
    """Replicate each point until its confidence interval is narrow enough."""

    metric: Metric
    of: Statistic = "median"
    #: of the interval, in the metric's unit; or as a share of the statistic, as in "5%"
    half_width: Annotated[float, Field(gt=0)] | Annotated[str, Field(pattern=r"^\d+(\.\d+)? ?%$")]
    confidence: Confidence = 0.95
    least: Annotated[Replications, Field(ge=2)] = 10
    most: Annotated[Replications, Field(ge=2)] = 1000
    #: replications between two looks at the interval
    batch: Annotated[int, Field(ge=1)] = 10

    @model_validator(mode="after")
    def _check(self) -> "Stop":
        if self.least > self.most:
            raise ValueError(f"least is {self.least}, more than most, {self.most}")
        if self.allowed(1.0) <= 0:
            raise ValueError("half_width is 0 %: no number of runs reaches it")
        return self

    def allowed(self, statistic: float) -> float:
        """Return the largest half-width at which a point is done."""
        if isinstance(self.half_width, str):
            return abs(statistic) * float(self.half_width.rstrip(" %")) / 100
        return self.half_width


class Hypothesis(Strict):
    """A claim: at pairs of points that differ in these settings alone, a metric is greater at the first."""

    claim: Annotated[str, Field(min_length=1)]
    metric: Metric
    greater: Annotated[Settings, Field(min_length=1)]
    than: Annotated[Settings, Field(min_length=1)]


class Agreement(Strict):
    """Points to be compared with others that differ in these settings alone, as the same scenario on two tiers."""

    points: Annotated[Settings, Field(min_length=1)]
    to: Annotated[Settings, Field(min_length=1)]
    #: largest difference of the median goodput, as a share of that at `to`
    within: Annotated[float, Field(gt=0, lt=1)]


class Reference(Strict):
    """A published figure to compare with: the points with these settings, a metric, its value there."""

    source: Annotated[str, Field(min_length=1)]
    metric: Metric
    at: Settings = {}
    value: float


class Campaign(Strict):
    """A campaign, as in its file."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
    description: str = ""
    #: a file, relative to the campaign's, or the scenario itself; a sweep may name files, too
    scenario: str | dict[str, Any] | None = None
    #: changes of the scenario at all points
    set: Settings = {}
    sweep: Sweep = Sweep()
    seeds: Seeds = Seeds()
    stop: Stop | None = None
    #: values of `summary.json`, for tables
    metrics: Annotated[tuple[Metric, ...], Field(min_length=1)] = (
        "goodput_bps",
        "throughput_bps",
        "duration_s",
        "retransmissions",
        "timeouts",
    )
    hypotheses: tuple[Hypothesis, ...] = ()
    agreement: tuple[Agreement, ...] = ()
    reference: tuple[Reference, ...] = ()
    #: `summary`: keep no records of the runs, which saves 90 % of the space; figures over time need records
    keep: Literal["records", "summary"] = "records"

    @model_validator(mode="after")
    def _check(self) -> "Campaign":
        if self.stop is not None and "count" in self.seeds.model_fields_set:
            raise ValueError("seeds.count and stop exclude one another: stop.most limits the replications")
        if self.hypotheses and not self.seeds.paired:
            raise ValueError("hypotheses are tested in pairs: leave out seeds.paired")
        if self.agreement and not self.seeds.paired:
            raise ValueError("agreement is of the same seeds: leave out seeds.paired")
        return self

    @property
    def all_metrics(self) -> tuple[str, ...]:
        """The metrics to keep, those that hypotheses, references and `stop` need included."""
        needed = [*self.metrics, *(h.metric for h in self.hypotheses), *(r.metric for r in self.reference)]
        if self.stop is not None:
            needed.append(self.stop.metric)
        return tuple(dict.fromkeys(needed))

    @property
    def least(self) -> int:
        """The number of replications of a point before the stopping rule looks at it; all, without one."""
        return self.seeds.count if self.stop is None else self.stop.least

    @property
    def most(self) -> int:
        """The largest number of replications of a point."""
        return self.seeds.count if self.stop is None else self.stop.most


def load_campaign(path: Path) -> Campaign:
    """Return the campaign in a file. Raises FadelabError with one line: the file, the key, the fault."""
    campaign = parse_campaign(read_mapping(path, "campaign"), str(path))
    # folders that were begun before this rule still open
    if (stop := campaign.stop) is not None and stop.least < (least := least_n(stop.of, stop.confidence)):
        share = f"{100 * stop.confidence:.4g} %"
        raise CampaignError(
            f"{path}: stop.least: {stop.least} runs carry no {share} interval of the {stop.of}: {least} or more do"
        )
    return campaign


def parse_campaign(raw: dict[str, Any], where: str) -> Campaign:
    """Return the campaign of these values; `where` names their source in errors. Raises CampaignError."""
    return model_of(Campaign, raw, where)


def model_of(model: type[_Model], raw: dict[str, Any], where: str) -> _Model:
    """Return the object of these values; `where` names their source in errors. Raises CampaignError."""
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise CampaignError(f"{where}: {_explain(error)}") from None


def _explain(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"{place}: unknown key"
    message = str(first["ctx"]["error"]) if first["type"] == "value_error" else first["msg"]
    message = message[0].lower() + message[1:]
    return f"{place}: {message}" if place else message
