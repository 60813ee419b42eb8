"""Faults of processes, interfaces, disks, dashboards while live runs and campaigns go on, each with what must survive.

A `Case` is one fault and its statement. `stage.outcome` lives through one and looks at what is left behind.
`benchmarks.process_faults` does so again and again; `tests/testbed/live/test_process_faults.py` does two of them.
"""
