"""Scheduled changes on tier `model`: what holds before, at and after them."""

import json
from pathlib import Path
from typing import Any

import pytest

from linklayer.schemes import SCHEMES
from telemetry.parquet import read_records
from tests.harness.model_runs import kept, model

BULK = [{"kind": "bulk", "direction": "up", "duration_s": 12}]
SIZED = [{"kind": "bulk", "direction": "up", "bytes": 2_000_000}]


def channel(per: float) -> dict[str, Any]:
    return {"rate_bps": 2_000_000, "delay_ms": 25, "errors": {"model": "bernoulli", "per": per}}


def rows(folder: Path, kind: str, until_s: float) -> list[dict[str, Any]]:
    return [row for row in read_records(folder, kind) if row["time_ns"] < until_s * 1e9]


def up(folder: Path, column: str) -> dict[float, Any]:
    """A column of the uplink's records by their times (s)."""
    return {round(row["time_ns"] / 1e9, 1): row[column] for row in read_records(folder, "link") if row["link"] == "up"}


@pytest.mark.slow
def test_runs_that_differ_later_are_equal_until_then(tmp_path: Path) -> None:
    changes: list[list[dict[str, Any]]] = [
        [],
        [{"at_s": 6, "set": {"link.scheme": "none"}}],
        [{"at_s": 6, "set": {"channel.per": 0.3}}],
    ]
    folders = [
        kept(model(workloads=BULK, channel=channel(0.05), changes=each), tmp_path / str(number))[1]
        for number, each in enumerate(changes)
    ]
    for kind in ("link", "flow", "tcp"):
        before = [rows(folder, kind, 6) for folder in folders]
        assert before[0] == before[1] == before[2], kind
        assert len(before[0]) > 50
        after = [rows(folder, kind, 12) for folder in folders]
        assert after[0] != after[1] != after[2] != after[0], kind


def test_losses_begin_and_end_when_the_schedule_says(tmp_path: Path) -> None:
    changes = [{"at_s": 4, "set": {"channel.per": 0.3}}, {"at_s": 8, "set": {"channel.per": 0}}]
    summary, folder = kept(model(workloads=BULK, channel=channel(0), changes=changes), tmp_path)
    at = up(folder, "corruption_losses")
    assert at[4.0] == 0
    # a packet of 1500 octets takes 6 ms: some 160 in a second
    assert at[5.0] > 20
    # frames that leave before arrive after
    assert at[8.1] == at[12.0] > at[5.0]
    control = read_records(folder, "control")
    assert [(row["time_ns"], row["name"], json.loads(row["value"])) for row in control] == [
        (4_000_000_000, "channel.per", 0.3),
        (8_000_000_000, "channel.per", 0),
    ]
    # nobody intervened
    assert summary.changes == 0


def test_paused_workloads_send_nothing(tmp_path: Path) -> None:
    changes = [{"at_s": 4, "set": {"paused": True}}, {"at_s": 16, "set": {"paused": False}}]
    bulk = [{**BULK[0], "duration_s": 20}]
    _, folder = kept(model(workloads=bulk, channel=channel(0.05), changes=changes), tmp_path)
    packets = {
        round(row["time_ns"] / 1e9, 1): row["packets"] for row in read_records(folder, "link") if row["link"] == "up"
    }
    # what TCP has buffered still goes out
    assert packets[15.9] == packets[14.0] > packets[4.0]
    assert packets[18.0] > packets[16.0] + 100


@pytest.mark.parametrize("scheme", [name for name, scheme in SCHEMES.items() if scheme.split is None])
def test_a_transfer_outlives_a_change_to_any_scheme_and_back(scheme: str, tmp_path: Path) -> None:
    first = "none" if scheme == "slacp" else "slacp"
    changes = [
        {"at_s": 2, "set": {"link.scheme": scheme}},
        {"at_s": 5, "set": {"link.scheme": first, "link.eln": "ends"}},
        {"at_s": 6, "set": {"link.eln": "none"}},
    ]
    run = model(workloads=SIZED, link={"scheme": first}, channel=channel(0.05), changes=changes)
    summary, folder = kept(run, tmp_path)
    assert (summary.finished, summary.intact) == (True, True)
    schemes = {
        round(row["time_ns"] / 1e9, 1): row["scheme"] for row in read_records(folder, "link") if row["link"] == "up"
    }
    assert [schemes[at] for at in (1.9, 2.2, 4.9, 5.2)] == [first, scheme, scheme, first]
