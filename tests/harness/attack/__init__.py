"""Hostile input at packet filters, link ARQ, slacp-adaptive, LT-TCP, accurate ECN and QUIC.

Valid flows beside it must not feel it.

A `Door` is a thing under attack (`door.py`), a file each; `doors.py` names all. `siege` makes a Hypothesis state
machine of one, which draws how often it is shot at and when it forgets everything, checks its rules after every step,
and shrinks what broke one to a short reproducer. `tests/conformance/test_attacks.py` runs each for a moment,
`benchmarks.fuzz` for millions of shots.
"""
