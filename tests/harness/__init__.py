"""The drivers of the tests: code that opens, steers, feeds and reads the things under test. The tests assert.

Real runs: `live_runs` (and the leftovers of a run), `steered` (a run changed while it goes on), `scenarios`,
`dashboards`, `tshark` and `captures` (the contents of captures). Radios: `radios`, `awgn`, `bursts`, `scripted_hop`,
and for the virtual USRP `radio_process`, `medium` and `distributions`. Links and filters: `slacp_pair`, `base_station`,
`snooping`, `assault`, `attacked_network`, `attacker`, `checked`, `octets`, `hop_driving`, `stats`. The dashboard:
`records`, `dashboard_runs`, `browser`, `grafana`. Databases: `influxd`, `web`. The machine: `busy`, a pytest plugin,
with `lateness`; `processes` to be killed. All of them: `waiting`.
"""
