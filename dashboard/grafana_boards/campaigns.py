"""The board of campaigns: what is in the database of each, by point and by run.

Read first: `CampaignRecord` and the records after it in `telemetry/records.py`.

Rules kept
- Campaigns are shown whole, whatever the board's time range.
- Of a point's records the newest counts.
- Words are those of the report, so that an infinite duration says "never". Bars have the numbers: a figure or an end
  that is infinite, or is not there, has none.
- Transformations are those that Grafana 9.4 and 12 do alike (a test has the list).
"""

from typing import Any

from dashboard.grafana_boards.frame import Row
from dashboard.grafana_boards.influxql import CAMPAIGN
from dashboard.grafana_boards.panels import Panel, new_panel, override, target
from telemetry.records import CampaignPointRecord, CampaignRecord, CampaignRunRecord

UID = "fadelab-campaigns"

_CHOSEN = f'{CAMPAIGN} AND "metric" =~ /^${{metric:regex}}$/'
#: the newest record of each point
_NEWEST = f'FROM "{CampaignPointRecord.measurement}" WHERE {_CHOSEN} GROUP BY "point" ORDER BY time DESC LIMIT 1'
#: points in the plan's order, which the databases do not keep; their times are those of their newest records
_IN_ORDER = [
    {"id": "sortBy", "options": {"fields": {}, "sort": [{"field": "point"}]}},
    {"id": "organize", "options": {"excludeByName": {"Time": True, "time": True}}},
]
_PLAIN = {"color": {"mode": "fixed", "fixedColor": "text"}, "custom": {"align": "left"}}


def campaigns() -> list[Row]:
    """Return the rows of the board."""
    return [
        ("Campaigns", [_campaigns()]),
        ("Points", [_points(), _bars("median", "blue"), _bars("mean", "green")]),
        ("Single runs", [_runs()]),
    ]


def _campaigns() -> Panel:
    columns = '"campaign", "state", 100.0 * "ended" / "planned" AS "progress", "ended", "planned", "failed", "points"'
    asked = f'SELECT {columns}, "newest_ms" AS "newest end", "plan" FROM "{CampaignRecord.measurement}"'
    link = {"title": "This campaign", "url": f"/d/{UID}?var-campaign=${{__data.fields.campaign}}"}
    overrides = [
        override("byRegexp", "/^[Tt]ime$/", displayName="began", **{"custom.width": 170}),
        override("byName", "campaign", links=[link], **{"custom.width": 320}),
        override("byName", "progress", unit="suffix:%", decimals=0, **{"custom.width": 90}),
        override("byName", "newest end", unit="dateTimeAsIso", noValue="none seen", **{"custom.width": 180}),
        override("byRegexp", "/^(ended|planned|failed|points)$/", decimals=0, **{"custom.width": 90}),
        override("byName", "state", **{"custom.width": 110}),
    ]
    panel = _table(
        "Campaigns: a click on a name leads to it",
        "Those that began last. Planned: so far, since a stopping rule may ask for more. A command that was killed "
        "leaves its campaign running.",
        f"{asked} ORDER BY time DESC LIMIT 500",
        overrides,
        height=8,
    )
    panel["options"]["sortBy"] = [{"displayName": "began", "desc": True}]
    return panel


def _points() -> Panel:
    columns = {
        "label": "settings",
        "n": "n",
        "median_text": "median",
        "median_interval": "95 % of the median",
        "mean_text": "mean",
        "mean_interval": "95 % of the mean",
    }
    named = ", ".join(f'"{field}" AS "{name}"' for field, name in columns.items())
    overrides = [
        override("byName", "point", **{"custom.width": 200}),
        override("byName", "settings", **{"custom.width": 320}),
        override("byName", "n", decimals=0, **{"custom.width": 80}),
    ]
    panel = _table(
        "Points: $metric",
        "As in the report. n: runs that count and have the metric. ‡: a transfer did not end, so that its duration is "
        "infinite (never). †: a run was late. §: runs failed and are left out. ¶: not known.",
        f"SELECT {named} {_NEWEST}",
        overrides,
        height=10,
    )
    panel["transformations"] = _IN_ORDER
    return panel


def _bars(of: str, colour: str) -> Panel:
    columns = {"label": "settings", f"{of}_low": "low end", of: of, f"{of}_high": "high end"}
    named = ", ".join(f'"{field}" AS "{name}"' for field, name in columns.items())
    custom = {"fillOpacity": 80, "lineWidth": 0, "axisSoftMin": 0}
    ends = override("byRegexp", "/^(low|high) end$/", color={"mode": "fixed", "fixedColor": f"super-light-{colour}"})
    panel = new_panel(
        "barchart",
        f"{of.capitalize()} and its 95 % interval: $metric",
        "Between the ends of its interval. No bar: there is none, or it is infinite; the table tells why.",
        [target("A", f"SELECT {named} {_NEWEST}", "") | {"resultFormat": "table"}],
        {"unit": "locale", "color": {"mode": "fixed", "fixedColor": colour}, "custom": custom},
        [ends],
        width=12,
        height=14,
    )
    panel["options"] = {
        "xField": "settings",
        "orientation": "horizontal",
        "xTickLabelRotation": 0,
        "xTickLabelMaxLength": 40,
        "showValue": "never",
        "stacking": "none",
        "groupWidth": 0.8,
        "barWidth": 0.9,
        "legend": {"showLegend": True, "displayMode": "list", "placement": "bottom", "calcs": []},
        "tooltip": {"mode": "multi", "sort": "none"},
    }
    panel["transformations"] = _IN_ORDER
    return panel


def _runs() -> Panel:
    asked = f'SELECT "seed", "point", "text" FROM "{CampaignRunRecord.measurement}" WHERE {_CHOSEN}'
    panel = _table(
        "Runs by seed: $metric",
        "Each run that has ended, by the name of its point. Runs that do not count have their kind in place of the "
        "metric; marks as above.",
        asked,
        [override("byRegexp", "/^seed/", displayName="seed", decimals=0, **{"custom.width": 80})],
        height=14,
    )
    group = {"operation": "groupby", "aggregations": []}
    newest = {"operation": "aggregate", "aggregations": ["lastNotNull"]}
    matrix = {"rowField": "seed", "columnField": "point", "valueField": "text (lastNotNull)"}
    panel["transformations"] = [
        # or each column would have the name of the field, which the data source sets
        {"id": "groupBy", "options": {"fields": {"seed": group, "point": group, "text": newest}}},
        {"id": "groupingToMatrix", "options": matrix},
    ]
    return panel


def _table(title: str, description: str, asked: str, overrides: list[dict[str, Any]], *, height: int) -> Panel:
    asking = target("A", asked, "") | {"resultFormat": "table"}
    panel = new_panel("table", title, description, [asking], _PLAIN, overrides, width=24, height=height)
    panel["options"] = {"showHeader": True}
    return panel
