"""The measurement of slacp-adaptive against its bound (`experiments/adaptive/eta.py`)."""

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from experiments.adaptive import eta
from experiments.adaptive.bound import Link, bound
from testbed.campaigns.journal import Journal
from testbed.scenario.file import load

CELL = eta.Cell(link="slacp-adaptive", tcp="user:sack", errors="bernoulli", loss=1, budget=3)


@pytest.mark.parametrize("link", eta.LINKS)
@pytest.mark.parametrize("errors", eta.BURSTS)
def test_settings_name_the_link_and_its_losses(link: str, errors: str) -> None:
    cell = eta.Cell(link=link, tcp="user:sack", errors=errors, loss=20, budget=2 if link == "slacp-adaptive" else 0)
    scenario = load(Path("scenarios/lossy-link.yaml"), cell.settings, tier="model")
    assert scenario.link.scheme == link.partition(",")[0]
    model: Any = scenario.channel.errors
    if errors == "bernoulli":
        assert model.per == 0.2
    else:
        assert model.bad_ms / (model.good_ms + model.bad_ms) == pytest.approx(0.2)
        assert model.bad_ms == pytest.approx(eta.BURSTS[errors] * 6.096)


def test_run_of_a_good_link_is_full_and_its_delays_exceed_one_way() -> None:
    found = eta.measure(eta.Task(CELL, 1, ("link.scheme=queued", "channel.errors=none")))
    # without the link's headers frames have 1500 octets
    assert 0.98 < found.goodput_bps / (eta.RATE_BPS * 1448 / 1500) < 1.001
    assert 25 + eta.FRAME_MS <= found.p50_ms <= found.p99_ms
    assert found.residual == 0


def test_eta_is_the_share_of_what_the_bound_permits() -> None:
    share = bound(Link(0.01, 3, 4), 1e-4).share
    goodput = 0.99 * 2e6 * 1448 / 1524 * share
    assert eta.eta(CELL, {"goodput_bps": goodput}) == pytest.approx(1)


@pytest.mark.parametrize("budget", [2, 3, 6])
def test_floor_is_the_chance_of_a_burst_as_long_as_the_sends(budget: float) -> None:
    cell = eta.Cell(link="slacp-adaptive", tcp="user:sack", errors="ge20", loss=10, budget=budget)
    sends_ms = (budget - 1) * eta.ROUND_TRIP_MS
    assert cell.floor == pytest.approx(0.1 * math.exp(-sends_ms / (20 * 6.096)))
    assert CELL.floor == 0


def test_table_has_medians_of_the_runs_in_a_file(tmp_path: Path) -> None:
    figures = dict.fromkeys(eta.Figures.__dataclass_fields__, 0.0)
    with Journal(tmp_path / "eta.jsonl") as journal:
        for seed, goodput in enumerate((1e6, 1.5e6, 1.6e6)):
            figures["goodput_bps"] = goodput
            journal.append({"cell": asdict(CELL), "seed": seed, "figures": figures})
    [row] = list(eta.lines(eta.collect(tmp_path / "eta.jsonl")))[2:]
    assert list(eta.brief(eta.collect(tmp_path / "eta.jsonl")))[-1] == "| 1 % | sack | 0.80, 0e+00, 0 |"
    assert "| 3 | 0.797 | 0.532 to 0.850 |" in row
