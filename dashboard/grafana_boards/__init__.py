"""Grafana's boards, written by program: `python -m dashboard.grafana_boards` writes all of `dashboard/grafana/`.

Read first: docs/grafana.md. Then

    influxql.py      the queries, by what is shown: a mean, a rate, a ratio
    panels.py        the panels' common look
    frame.py         what all boards share: variables, links, annotations, refresh
    overview.py, tcp.py, link.py, radio.py    one board each
    provisioning.py  the data source and where Grafana finds the boards

Rules: what is committed is what this writes (a test compares), and every query finds data in a database that holds a
run (another test). Fields and tags are those of `telemetry/records.py`.

Left out: alerts; and comparing runs in one chart, which the dashboard's own page does.
"""
