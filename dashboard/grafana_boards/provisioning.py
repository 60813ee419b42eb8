"""Grafana's provisioning files: where the database is, and where the boards are."""

from dashboard.grafana_boards.influxql import DATASOURCE

DATABASE = "fadelab"
#: on the machine or in the container where Grafana runs
BOARDS = "/etc/grafana/boards"

#: Grafana puts environment variables into provisioning files itself
DATASOURCES = f"""\
# Written by ./fadelab docs --write; docs/grafana.md says what the variables are.
apiVersion: 1

datasources:
  - name: fadelab
    uid: {DATASOURCE}
    type: influxdb
    access: proxy
    url: $INFLUX_URL
    isDefault: true
    editable: false
    jsonData:
      version: InfluxQL
      dbName: {DATABASE}
      httpMode: POST
      httpHeaderName1: Authorization
    secureJsonData:
      httpHeaderValue1: $INFLUX_AUTHORIZATION
"""

DASHBOARDS = f"""\
# Written by ./fadelab docs --write; docs/grafana.md says how to put them elsewhere.
apiVersion: 1

providers:
  - name: fadelab
    folder: fadelab
    type: file
    disableDeletion: true
    allowUiUpdates: false
    updateIntervalSeconds: 30
    options:
      path: {BOARDS}
"""
