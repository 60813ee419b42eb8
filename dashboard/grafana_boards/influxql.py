"""InfluxQL for the panels: what Grafana asks of the measurements of `telemetry/records.py`.

Rules: variables stand in regular expressions only, in the format in which Grafana escapes them; every query keeps to
the chosen run, to the board's time range and to the intervals of its panel. Rates come from counters; an interval
without a record has no value.
"""

from dataclasses import dataclass

from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.variants import Dataquery

from telemetry.records import FlowRecord, LinkRecord, PhyRecord, Record, TcpRecord

#: the data source's uid, by which boards know it
DATASOURCE = "fadelab-influxdb"

_RUN = '"run" =~ /^${run:regex}$/'


@dataclass(frozen=True, slots=True)
class Source:
    """A measurement, and those of its tags for which the boards have a variable."""

    record: type[Record]
    variables: tuple[str, ...]

    @property
    def where(self) -> str:
        """What is chosen on the board."""
        chosen = [f'"{name}" =~ /^${{{name}:regex}}$/' for name in self.variables]
        return " AND ".join([_RUN, *chosen, "$timeFilter"])

    @property
    def tags(self) -> str:
        """Whose a figure is, as a list for GROUP BY."""
        return ", ".join(f'"{tag}"' for tag in self.record.tags)


TCP = Source(TcpRecord, ("host", "flow"))
#: its host is the receiver, the variable's the sender
FLOW = Source(FlowRecord, ("flow",))
LINK = Source(LinkRecord, ("link",))
PHY = Source(PhyRecord, ("link",))


def mean(source: Source, field: str) -> str:
    """The mean of a field in each interval."""
    return _select(source, f'mean("{field}")')


def last(source: Source, field: str) -> str:
    """The last value of a field in each interval; of a counter, how far it has come."""
    return _select(source, f'last("{field}")')


def rate(source: Source, counter: str, times: int = 1) -> str:
    """By how much a counter rises per second; `times` 8 makes bits of bytes."""
    return _select(source, f"{_per_second(counter)}{'' if times == 1 else f' * {times}'}")


def ratio(source: Source, part: str, whole: str) -> str:
    """The share of one counter's rise in another's; no value while the other does not rise."""
    rises = _select(source, f'{_per_second(part)} AS "part", {_per_second(whole)} AS "whole"')
    return f'SELECT "part" / "whole" FROM ({rises}) WHERE "whole" > 0 GROUP BY {source.tags}'


def total(source: Source, field: str) -> str:
    """The sum of the means over all whose they are."""
    means = _select(source, f'mean("{field}") AS "one"')
    return f'SELECT sum("one") FROM ({means}) WHERE $timeFilter GROUP BY time($__interval) fill(none)'


def rises(source: Source, counter: str) -> str:
    """The moments at which a counter rose, by how much, and whose it is."""
    name = source.record.measurement
    steps = f'SELECT non_negative_difference("{counter}") AS "rise" FROM "{name}" WHERE {source.where}'
    return f'SELECT "rise", {source.tags} FROM ({steps} GROUP BY {source.tags}) WHERE "rise" > 0'


def changes() -> str:
    """What a person changed, and when."""
    return f'SELECT "value", "name" FROM "control" WHERE {_RUN} AND $timeFilter'


def tag_values(measurement: str, tag: str, *, of_run: bool = True) -> str:
    """What a variable may be: all values of a tag, in the chosen run or at all."""
    where = f" WHERE {_RUN}" if of_run else ""
    return f'SHOW TAG VALUES FROM "{measurement}" WITH KEY = "{tag}"{where}'


class Target(Dataquery, Builder[Dataquery]):
    """A panel's query and what its series are called; `$tag_link` in a name is the series' tag."""

    def __init__(self, ref: str, query: str, alias: str) -> None:
        self._ref = ref
        self._query = query
        self._alias = alias

    def build(self) -> Dataquery:
        """Return the query: it is one already."""
        return self

    def to_json(self) -> dict[str, object]:
        """Return what Grafana's InfluxDB plugin reads."""
        return {
            "refId": self._ref,
            "datasource": {"type": "influxdb", "uid": DATASOURCE},
            "query": self._query,
            "rawQuery": True,
            "alias": self._alias,
            "resultFormat": "time_series",
        }


def _per_second(counter: str) -> str:
    return f'non_negative_derivative(last("{counter}"), 1s)'


def _select(source: Source, columns: str) -> str:
    name = source.record.measurement
    return f'SELECT {columns} FROM "{name}" WHERE {source.where} GROUP BY time($__interval), {source.tags} fill(none)'
