"""Grafana's boards, written by program: `./fadelab docs --write` writes all of `dashboard/grafana/`.

Read first: docs/grafana.md and `dashboard/charts/`, whose charts the panels are. Then

    boards.py        the charts of each board, in rows with headings: a panel is a name here
    campaigns.py     the board of campaigns
    panels.py        the look of charts, present figures, states and tables
    influxql.py      the queries behind the lines of charts
    frame.py         the common part of all boards: variables, links, annotations, refresh, the schema
    alerts.py        the alert rules
    provisioning.py  the data source and where Grafana finds the boards

Rules: what is committed is what this writes (a test compares), for the oldest schema that docs/grafana.md names, since
Grafana reads those before its own; every query finds data in a database that holds a run (another test).
"""
