"""The controls of a run: what they take."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from common.sides import SIDES
from dashboard.control import Control, ControlError
from testbed.scenario.run_plan import Plan
from testbed.scenario.schema import Scenario, error_part
from testbed.steering import Steering
from tests.harness.scenarios import scenario

FADING = {"profile": "rician", "k_db": 6, "doppler_hz": 12}


def on_air(**channel: Any) -> Scenario:
    return scenario(tier="vusrp", channel={"rate_bps": 2_000_000, "delay_ms": 15, "snr_db": 15, **channel})


def control(steering: Steering, name: str) -> Control:
    [found] = [c for c in steering.describe() if c.name == name]
    return found


def test_controls_show_the_scenario() -> None:
    steering = Steering(on_air(fading=FADING, per=0.05))
    values = {c.name: c.value for c in steering.describe()}
    air = {"snr_db": 15, "fading": "rician", "doppler_hz": 12, "errors": "bernoulli", "per": 5}
    assert values == {**air, "slacp": True, "eln": False, "paused": False}
    assert [c.name for c in steering.describe() if c.why_not] == []


def test_a_run_without_an_air_of_its_own_says_why() -> None:
    steering = Steering(scenario())
    assert [c.name for c in steering.describe() if c.why_not] == ["snr_db", "fading", "doppler_hz"]
    with pytest.raises(ControlError, match=r"^SNR cannot be changed: tier emulated has no radio"):
        steering.set("snr_db", 10.0)
    assert steering.take() == []


@pytest.mark.parametrize("scheme", ["split", "split-smart"])
def test_scheme_cannot_change_while_connections_are_split(scheme: str) -> None:
    steering = Steering(scenario(link={"scheme": scheme}))
    with pytest.raises(ControlError, match=rf"^SLACP cannot be changed: {scheme} splits connections"):
        steering.set("slacp", True)
    assert steering.take() == []


def test_a_change_is_a_scenario_for_both_directions() -> None:
    steering = Steering(on_air(up={"snr_db": 20, "per": 0.2}, fading=FADING))
    steering.set("snr_db", 7.5)
    steering.set("per", 25)
    steering.set("fading", "eva")
    changes = steering.take()
    assert [(c.name, json.loads(c.value)) for c in changes] == [("snr_db", 7.5), ("per", 25), ("fading", "eva")]
    for side in SIDES:
        direction = changes[-1].scenario.channel.direction(side)
        assert direction.snr_db == 7.5
        assert direction.errors == error_part("bernoulli", per=0.25)
        assert direction.fading is not None
        assert (direction.fading.profile, direction.fading.doppler_hz) == ("eva", 12)
    # each change stands on the one before
    assert changes[0].scenario.channel.direction("down").fading.profile == "rician"  # type: ignore[union-attr]
    assert steering.take() == []


def test_fading_goes_and_comes_back_as_it_was() -> None:
    steering = Steering(on_air(fading=FADING))
    for profile in ("none", "rician"):
        steering.set("fading", profile)
    without, again = (change.scenario.channel.direction("up").fading for change in steering.take())
    assert without is None
    assert again is not None
    assert (again.profile, again.k_db, again.doppler_hz) == ("rician", 6, 12)
    steering.set("doppler_hz", 40)
    assert steering.take()[0].scenario.channel.direction("up").fading.doppler_hz == 40  # type: ignore[union-attr]


@pytest.mark.parametrize("model", ["none", "low", "vhigh", "bernoulli"])
def test_every_error_model_can_be_had_from_every_other(model: str) -> None:
    for first in ("none", "huge", "bernoulli"):
        steering = Steering(scenario())
        steering.set("errors", first)
        steering.set("errors", model)
        assert steering.take()[-1].scenario.channel.direction("down").errors.model == model
        assert control(steering, "errors").value == model


def test_eln_goes_on_and_off() -> None:
    steering = Steering(scenario(link={"eln": "base", "scheme": "none"}))
    assert control(steering, "eln").value is True
    for value, place in ((False, "none"), (True, "ends"), (False, "none")):
        steering.set("eln", value)
        [change] = steering.take()
        assert (change.scenario.link.eln, change.scenario.link.scheme) == (place, "none")
        assert control(steering, "eln").value is value


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("loudness", 1, "loudness is no control of this run: there are snr_db"),
        ("snr_db", 41, r"SNR is 41: must be a number from 0 to 40"),
        ("snr_db", "15", r'SNR is "15": must be a number'),
        ("snr_db", True, r"SNR is true: must be a number"),
        ("snr_db", float("nan"), r"SNR is NaN: must be a number"),
        ("fading", "foggy", r'Fading is "foggy": must be one of none, flat'),
        ("slacp", 1, "SLACP is 1: must be true or false"),
        ("eln", "base", 'ELN is "base": must be true or false'),
    ],
)
def test_what_is_refused_changes_nothing(name: str, value: Any, complaint: str) -> None:
    steering = Steering(on_air())
    before = list(steering.describe())
    with pytest.raises(ControlError, match=complaint):
        steering.set(name, value)
    assert (list(steering.describe()), steering.take()) == (before, [])


def test_a_scheme_the_radios_cannot_carry_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_small(plan: Plan) -> None:
        raise RuntimeError(f"frames of {plan.max_frame_bytes} bytes")

    monkeypatch.setattr("testbed.steering.medium_of", lambda plan: SimpleNamespace(check=too_small))
    steering = Steering(on_air())
    with pytest.raises(ControlError, match=r"^frames of 1504 bytes$"):
        steering.set("slacp", False)
    assert control(steering, "slacp").value is True
