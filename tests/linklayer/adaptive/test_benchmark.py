"""The benchmark of slacp-adaptive's core runs and carries what it says; how fast is not a test's business."""

import json
import sys

import pytest

from benchmarks import adaptive_core


def test_it_prints_one_json_object(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["adaptive_core", "--frames", "300", "--repetitions", "1", "--json"])
    adaptive_core.main()
    results = json.loads(capsys.readouterr().out)["results"]
    assert [(row["per"], row["side"]) for row in results] == [
        (per, side) for per in (0.0, 0.1) for side in ("sending", "receiving")
    ]
    assert all(row["min_fps"] <= row["median_fps"] <= row["max_fps"] for row in results)


@pytest.mark.parametrize("per", [0.0, 0.1])
def test_packets_arrive(per: float) -> None:
    sample = adaptive_core.measure(per, 2000, 32)
    assert sample.delivered >= 0.95 * sample.packets > 1500
