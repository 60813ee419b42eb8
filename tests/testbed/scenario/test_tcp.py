"""The TCP of a scenario: a name, or one of our own with another recovery or growth, or other options of them."""

import pickle
from dataclasses import fields
from typing import Any

import pytest

from hosts.tcp.config import SEAMS
from testbed.scenario.file import validate
from testbed.scenario.schema import Scenario
from testbed.scenario.settings import ScenarioError, apply_setting
from testbed.simulation import simulate
from tests.harness.model_runs import model

OPTIONS = [
    (seam, name, option)
    for seam, plugins in SEAMS.items()
    for name, plugin in plugins.items()
    for option in fields(plugin.options)
]


def made(*settings: str, tcp: Any = None, tier: str = "model") -> Scenario:
    raw: dict[str, Any] = {"name": "x", "tier": tier, "channel": {"rate_bps": 1_000_000, "delay_ms": 10}, "tcp": tcp}
    raw["workloads"] = [{"kind": "bulk", "bytes": 1000}]
    for setting in settings:
        apply_setting(raw, setting)
    return validate(raw, "here")


@pytest.mark.parametrize(
    ("seam", "name", "option"), OPTIONS, ids=[".".join(map(str, o[:2])) + f".{o[2].name}" for o in OPTIONS]
)
def test_each_option_is_set_by_its_key_and_kept_in_the_stored_scenario(seam: str, name: str, option: Any) -> None:
    value = not option.default if isinstance(option.default, bool) else option.default * 0.9
    scenario = made(f"tcp.{seam}.name={name}", f"tcp.{seam}.{option.name}={str(value).lower()}", tcp="sack")
    own = getattr(scenario.own_tcp("h2"), seam)
    assert (own.name, getattr(own.options, option.name)) == (name, value)
    for left_out in ({"exclude_none": True}, {"exclude_defaults": True}):
        assert validate(scenario.model_dump(mode="json", **left_out), "stored") == scenario  # type: ignore[arg-type]
    assert pickle.loads(pickle.dumps(scenario)) == scenario


def test_options_left_out_are_the_profiles() -> None:
    scenario = made("tcp.growth.byte_counting=false", tcp="modern")
    assert scenario.own_tcp("h1") == made(tcp="modern").own_tcp("h1").but(byte_counting=False)
    assert scenario.tcps == "modern growth.byte_counting=False"
    both = made(tcp={"profile": "modern", "growth": "cubic"})
    assert both.own_tcp("h1") == made(tcp="modern").own_tcp("h1").but(growth="cubic")
    assert made("tcp_h2.recovery=reno", tcp="sack").tcps == "sack and sack recovery.name=reno"


def test_a_name_alone_is_stored_as_a_name() -> None:
    assert made(tcp={"profile": "modern", "growth": None}).tcp == "modern"
    assert made(tcp={"growth": None}).tcp == "sack"


@pytest.mark.parametrize(
    ("tier", "tcp", "setting", "words"),
    [
        ("emulated", None, "tcp.growth.beta=0.5", "only our own TCPs have recovery and growth, and 'cubic' is none"),
        ("emulated", "reference", "tcp.recovery=reno", "and 'reference' is none: leave them out, or choose from user:"),
        ("emulated", "user:sack", "tcp.growth=vegas", "tcp.growth: 'vegas' is unknown: choose from 'bbr3', 'cubic'"),
        ("model", "modern", "tcp.growth.beta=1", "tcp.growth.beta: input should be less than 1"),
        ("model", "modern", "tcp.growth.bta=1", r"tcp.growth.bta: unknown key \(did you mean beta\?\)"),
        ("model", "sack", "tcp.growth.beta=0.5", "tcp.growth.beta: is no key here"),
        ("model", "vegas", "tcp_h2.growth=cubic", "tcp 'vegas' cannot run on tier model"),
        ("model", 5, "seed=1", "tcp: input should be a valid string"),
    ],
)
def test_what_a_tcp_has_not_is_refused_in_one_line(tier: str, tcp: Any, setting: str, words: str) -> None:
    with pytest.raises(ScenarioError, match=words) as refused:
        made(setting, tcp=tcp, tier=tier)
    assert "\n" not in str(refused.value)


def test_an_option_changes_the_run_and_its_default_does_not() -> None:
    lossy = {"rate_bps": 1_000_000, "delay_ms": 20, "per": 0.02}
    growths = ("cubic", {"name": "cubic", "beta": 0.7}, {"name": "cubic", "beta": 0.3})
    same, as_well, other = (
        simulate(model(tcp={"profile": "sack", "growth": growth}, channel=lossy, link={"scheme": "none"})).flows
        for growth in growths
    )
    assert same == as_well != other
