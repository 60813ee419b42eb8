"""InfluxQL for the panels: queries of the measurements of `telemetry/records.py`.

Rules
- Variables stand in regular expressions only, in the format in which Grafana escapes them; every query keeps to the
  chosen run and, but for those of whole runs, to the board's time range and the intervals of its panel.
- A rate is the rises from record to record in an interval, over the times between these records: so it is the mean of
  the records' rates, each weighted by its time. The rise of a counter's last value from interval to interval would sag
  in the one that is not over yet, and a plain mean would count a record that came soon after another like any other.
  Figures that are rates in the records (`*_bps`) are weighted by these times, too. Where the records of an interval
  cover less than `SHORT_MS` there is none: the last record of a run comes a millisecond after the one before it, and
  a packet in this time is many times what the link can carry.
- A share or a ratio is that of all records in an interval, each weighted by its counts, and has no value where they
  count fewer than `FEW`: one packet of two is no loss of 50 %, and would flatten the scale for all others.
- An interval without a record is null, so that lines break and bars end where the run does.
- Only what InfluxDB 1.6, 2 and 3 have in common is used (a test has the list).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dashboard.charts import WINDOW_S, Figure, Line, Percentile, Rate, Ratio, Share, TotalRate, Value
from telemetry.influx.line import RUN_S
from telemetry.records import DatabaseRecord, FlowRecord, LinkRecord, RunRecord, TcpRecord

#: the data source's uid, by which boards know it
DATASOURCE = "fadelab-influxdb"

#: of how many frames or packets there is a share at the least
FEW = 10
#: over how long there is a rate at the least: half a window of the page (`charts.WINDOW_S`)
SHORT_MS = round(500 * WINDOW_S)

_RUN = '"run" =~ /^${run:regex}$/'
_OTHER = '"run" =~ /^${other:regex}$/'
_RUNS = '"run" =~ /^${runs:regex}$/'
_TIME = "$timeFilter"
#: the chosen campaign
CAMPAIGN = '"campaign" =~ /^${campaign:regex}$/'


@dataclass(frozen=True, slots=True)
class Scope:
    """The records of a query, and the span that gives one value."""

    #: conditions on tags
    where: tuple[str, ...]
    #: one value per interval of the panel, of the whole time range, or of the whole run in any range
    per: str = "interval"
    #: tags that tell series apart, besides those of their records
    each: tuple[str, ...] = ()

    def chosen(self, name: str) -> "Scope":
        """Return the scope limited to the values that the board's variable `name` has for the tag of that name."""
        return replace(self, where=(*self.where, f'"{name}" =~ /^${{{name}:regex}}$/'))

    def only(self, tag: str, value: str) -> "Scope":
        """Return the scope limited to one value of a tag."""
        return replace(self, where=(*self.where, f"\"{tag}\" = '{value}'"))

    def over(self, per: str) -> "Scope":
        """Return the scope with one value of something else."""
        return replace(self, per=per)

    def conditions(self) -> str:
        """The inner WHERE."""
        return " AND ".join(self.where if self.per == "run" else (*self.where, _TIME))

    def by(self, tags: Sequence[str]) -> str:
        """The tags that distinguish series: a list for GROUP BY."""
        return ", ".join(f'"{tag}"' for tag in (*self.each, *tags))

    def per_value(self, tags: Sequence[str]) -> str:
        """The GROUP BY that makes one value of each interval, of the range or of the run."""
        if self.per == "interval":
            return f" GROUP BY {', '.join(filter(None, ('time($__interval)', self.by(tags))))} fill(null)"
        return f" GROUP BY {self.by(tags)}" if self.by(tags) else ""

    def group(self, tags: Sequence[str]) -> str:
        """The outer WHERE and GROUP BY of a query with others inside."""
        return ("" if self.per == "run" else f" WHERE {_TIME}") + self.per_value(tags)


#: the chosen run
RUN = Scope((_RUN,))
#: the runs of the board that compares, by the letter that stands for each
COMPARED = {"A": RUN, "B": Scope((_OTHER,))}
#: all chosen runs of the board of several, each whole; and in a row that is repeated, the one of that row
SEVERAL = Scope((_RUNS,), "run", ("run",))
REPEATED = Scope((_RUNS,), "run")


def query(line: Line, scope: Scope, factor: float = 1.0) -> str:
    """Return the query for a line of a chart, its values times `factor`."""
    compile_figure = _COMPILERS[type(line.figure)]
    return compile_figure(line.figure, line.record, scope, factor)


def _value(figure: Value, record: type[DatabaseRecord], scope: Scope, factor: float) -> str:
    # by its name a rate over the time since the record before (telemetry/records.py)
    if figure.field.endswith("_bps"):
        return _mean_of_rates(figure, record, scope, factor)
    reduce = "last" if figure.newest else "mean"
    return _plain(f'{reduce}("{figure.field}"){_times(figure.factor * factor)}', record, scope)


def _mean_of_rates(figure: Value, record: type[DatabaseRecord], scope: Scope, factor: float) -> str:
    by = scope.by(record.tags)
    # a function that needs the record before cannot stand beside a plain field: the rises of a sum are the field again
    sums = f'SELECT cumulative_sum("{figure.field}") AS "total" FROM "{record.measurement}"'
    sums += f" WHERE {scope.conditions()} GROUP BY {by}"
    each = f'SELECT difference("total") AS "rate", elapsed("total", 1ms) AS "span" FROM ({sums}) GROUP BY {by}'
    weighted = f'SELECT "rate" * "span" AS "part", "span" AS "whole" FROM ({each}) GROUP BY {by}'
    return _quotient(weighted, record, scope, figure.factor * factor, SHORT_MS)


def _percentile(figure: Percentile, record: type[DatabaseRecord], scope: Scope, factor: float) -> str:
    return _plain(f'percentile("{figure.field}", {figure.percent}){_times(factor)}', record, scope)


def _rate(figure: Rate, record: type[DatabaseRecord], scope: Scope, factor: float) -> str:
    return _quotient(_rises(figure, record, scope), record, scope, 1000 * figure.factor * factor, SHORT_MS)


def _total_rate(figure: TotalRate, record: type[DatabaseRecord], scope: Scope, factor: float) -> str:
    rises = _rises(figure, record, scope)
    each = _quotient(rises, record, scope, 1000 * figure.factor * factor, SHORT_MS, name="one")
    if scope.per != "interval":
        return f'SELECT sum("one") FROM ({each}){scope.group(())}'
    # on a chart beside its parts: the sum of one alone would be its line once more
    sums = f'SELECT sum("one") AS "whole", count("one") AS "part" FROM ({each}){scope.group(())}'
    return f'SELECT last("whole") FROM (SELECT "whole" FROM ({sums}) WHERE "part" > 1){scope.group(())}'


def _share(figure: Share, record: type[DatabaseRecord], scope: Scope, factor: float) -> str:
    return _ratio(Ratio(figure.counter, figure.of), record, scope, 100 * factor)


def _ratio(figure: Ratio, record: type[DatabaseRecord], scope: Scope, factor: float) -> str:
    by = scope.by(record.tags)
    # counters begin with the run: of a whole run they are their own rises, the first record's among them
    rise = "max" if scope.per == "run" else "non_negative_difference"
    rises = ", ".join(
        f'{rise}("{counter}") AS "{name}"' for counter, name in ((figure.counter, "part"), (figure.of, "whole"))
    )
    records = f'SELECT {rises} FROM "{record.measurement}" WHERE {scope.conditions()} GROUP BY {by}'
    return _quotient(records, record, scope, factor, FEW)


def _quotient(
    records: str, record: type[DatabaseRecord], scope: Scope, factor: float, least: int, name: str = ""
) -> str:
    """The sum of "part" over that of "whole", times `factor`, where the latter is `least` or more."""
    by = scope.by(record.tags)
    sums = f'SELECT sum("part") AS "part", sum("whole") AS "whole" FROM ({records}){scope.group(record.tags)}'
    # by a float first: in a subquery, InfluxDB 1.6 takes the quotient of two integers for one, and cuts it off
    share = f'{_float(factor)} * "part" / "whole"'
    shares = f'SELECT {share} AS "share" FROM ({sums}) WHERE "whole" >= {least} GROUP BY {by}'
    named = f' AS "{name}"' if name else ""
    return f'SELECT last("share"){named} FROM ({shares}){scope.group(record.tags)}'


_COMPILERS: dict[type[Figure], Callable[..., str]] = {
    Value: _value,
    Percentile: _percentile,
    Rate: _rate,
    Ratio: _ratio,
    Share: _share,
    TotalRate: _total_rate,
}


#: columns of a run's figures by the time of the run: that time, and the figure, which is the line's name
ALIGNED_S, ALIGNED = "seconds of {}", "run {}"


def aligned_goodput(letter: str, scope: Scope, factor: float) -> str:
    """Goodput of all flows over the time of the run: in each second, the rise over the time that its records span."""
    rise = f'{_rise("bytes_received")} AS "part", 1000.0 * ({_rise(RUN_S)}) AS "whole"'
    return _aligned(letter, scope, FlowRecord, rise, 8000 * factor, SHORT_MS, "sum")


def aligned_share(counter: str, of: str, letter: str, scope: Scope) -> str:
    """Share of a counter's rise in another's over the time of the run, in each second, in per cent."""
    rises = f'{_rise(counter)} AS "part", {_rise(of)} AS "whole"'
    return _aligned(letter, scope, LinkRecord, rises, 100.0, FEW, "mean")


def aligned_total(field: str, letter: str, scope: Scope, factor: float) -> str:
    """Sum over all TCP senders of the mean of a figure in each second, over the time of the run."""
    return _aligned(
        letter, scope, TcpRecord, f'mean("{field}") AS "part", count("{field}") AS "whole"', factor, 1, "sum"
    )


def _rise(counter: str) -> str:
    return f'max("{counter}") - min("{counter}")'


def _aligned(
    letter: str, scope: Scope, record: type[DatabaseRecord], columns: str, factor: float, least: int, join: str
) -> str:
    """The figure of each second of a whole run, from its columns "part" and "whole"; a table."""
    by = scope.by(record.tags)
    each = f'SELECT mean("{RUN_S}") AS "at", {columns} FROM "{record.measurement}"'
    each += f" WHERE {scope.over('run').conditions()} GROUP BY time(1s), {by} fill(none)"
    figure = '"part"' if record is TcpRecord else '"part" / "whole"'
    figures = f'SELECT "at", {_float(factor)} * {figure} AS "one" FROM ({each}) WHERE "whole" >= {least} GROUP BY {by}'
    names = f'mean("at") AS "{ALIGNED_S.format(letter)}", {join}("one") AS "{ALIGNED.format(letter)}"'
    return f"SELECT {names} FROM ({figures}) GROUP BY time(1s) fill(none)"


def state(field: str, record: type[DatabaseRecord], scope: Scope) -> str:
    """The newest value of a field that is not a number."""
    return _plain(f'last("{field}")', record, scope)


def highest(counter: str, record: type[DatabaseRecord], scope: Scope) -> str:
    """The growth of a counter, summed over its sources."""
    by = scope.by(record.tags)
    most = f'SELECT max("{counter}") AS "most" FROM "{record.measurement}" WHERE {scope.conditions()} GROUP BY {by}'
    return f'SELECT sum("most") FROM ({most}){scope.group(())}'


def percentile(field: str, percent: int, record: type[DatabaseRecord], scope: Scope) -> str:
    """A percentile of a figure of all sources together."""
    asked = f'SELECT percentile("{field}", {percent}) FROM "{record.measurement}" WHERE {scope.conditions()}'
    return asked + scope.per_value(())


def finished(field: str, scope: Scope, factor: float = 1.0) -> str:
    """The figures of whole runs in the list of runs."""
    return _plain(f'last("{field}"){_times(factor)}', RunRecord, scope)


def runs(where: str = "", most: int = 500) -> str:
    """The newest runs, in a table; `where`: a condition. Times are text: Grafana would put marks into numbers."""
    columns = '"run", "scenario", "scheme", "tcp", "tier", "seed", "goodput_bps" * 0.000001 AS "goodput", '
    columns += '"duration_s" AS "duration", "begins", "ends"'
    only = f" WHERE {where}" if where else ""
    return f'SELECT {columns} FROM "{RunRecord.measurement}"{only} ORDER BY time DESC LIMIT {most}'


def chosen_run() -> str:
    """The chosen run, whenever it was; a table."""
    return runs(_RUN, 1)


def chosen_runs() -> str:
    """All chosen runs, whenever they were; a table."""
    return runs(_RUNS)


def compared_runs() -> dict[str, str]:
    """Both runs by their letters, whenever they were; tables."""
    return {letter: runs(scope.where[0], 1) for letter, scope in COMPARED.items()}


def events(record: type[DatabaseRecord], whose: str, scope: Scope = RUN) -> str:
    """Events in words, and the tag that names their subject."""
    return f'SELECT "text", "{whose}" FROM "{record.measurement}" WHERE {scope.conditions()}'


def begin(scope: Scope = RUN) -> str:
    """The begin of a run, with its scheme."""
    return f'SELECT "scheme" AS "text", "run" FROM "{RunRecord.measurement}" WHERE {scope.conditions()}'


def newest(scope: Scope = RUN) -> str:
    """The newest record of a run's links, with the scheme: its end, once it is over."""
    return f'SELECT last("scheme") AS "text", "run" FROM "{LinkRecord.measurement}" WHERE {scope.conditions()}'


def tag_values(measurement: str, tag: str, *, of: str = "run") -> str:
    """The values of a variable: those of a tag, in the chosen `run` or `campaign`, in `all`, or in all `others`."""
    where = {
        "run": f" WHERE {_RUN}",
        "campaign": f" WHERE {CAMPAIGN}",
        "all": "",
        "others": f" WHERE {_RUN.replace('=~', '!~')}",
    }[of]
    return f'SHOW TAG VALUES FROM "{measurement}" WITH KEY = "{tag}"{where}'


def _rises(figure: Rate | TotalRate, record: type[DatabaseRecord], scope: Scope) -> str:
    by = scope.by(record.tags)
    counter = figure.counter
    rises = f'non_negative_difference("{counter}") AS "part", elapsed("{counter}", 1ms) AS "whole"'
    return f'SELECT {rises} FROM "{record.measurement}" WHERE {scope.conditions()} GROUP BY {by}'


def _plain(column: str, record: type[DatabaseRecord], scope: Scope) -> str:
    return f'SELECT {column} FROM "{record.measurement}" WHERE {scope.conditions()}{scope.per_value(record.tags)}'


def _float(factor: float) -> str:
    """A factor as InfluxQL reads it: a float, without an exponent."""
    text = f"{factor:.9f}".rstrip("0")
    return f"{text}0" if text.endswith(".") else text


def _times(factor: float) -> str:
    return "" if factor == 1 else f" * {factor:.9f}".rstrip("0").rstrip(".")
