"""Every message crosses as a line and comes back equal; what is no message is refused in one line."""

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.compiled import hints_of
from hosts.codec import kind_of
from hosts.messages import AgentConfig, Decoder, FromProcess, ToProcess, encode
from hosts.workloads import WORKLOADS
from hosts.workloads.bulk import Bulk
from hosts.workloads.onoff_udp import OnOffUdp
from hosts.workloads.short import Short
from linklayer.filters.filter import Cause, Guess, Loss
from linklayer.link import Beliefs
from tcpip.segment import Flow

WAYS: dict[type[Any], Any] = {kind: way for way in (ToProcess, FromProcess) for kind in get_args(way)}
FLOWS = st.builds(Flow, *[st.integers()] * 4)
CAUSES = st.sampled_from(get_args(Cause))
#: of fields that messages do not look into
OPEN = Mapping[str, Any]
#: of fields whose types do not tell all, or are those of compiled classes
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "beliefs": st.none() | st.builds(Beliefs, **{name: st.from_type(hint) for name, hint in hints_of(Beliefs).items()}),
    "workloads": st.sampled_from([(), (Bulk(bytes=1), Short(direction="down")), (OnOffUdp(),)]),
    "probe_interval_ms": st.integers(1),
    "buffer_bytes": st.integers(1),
    "losses": st.lists(st.builds(Loss, st.integers(), FLOWS, st.integers(), st.integers(), CAUSES)).map(tuple),
    "guesses": st.lists(st.builds(Guess, st.integers(), FLOWS, st.integers(), CAUSES, st.text())).map(tuple),
}


def some(kind: type[Any]) -> st.SearchStrategy[Any]:
    """Messages of a kind with any values."""
    content = st.just({"name": "a", "channel": {"rate_bps": 1e6}})
    values = {name: content if hint == OPEN else st.from_type(hint) for name, hint in hints_of(kind).items()}
    return st.builds(kind, **{field.name: VALUES.get(field.name, values[field.name]) for field in fields(kind)})


def refusal(way: Any, line: bytes) -> str:
    with pytest.raises(ValueError, match=r"^.+$") as caught:
        Decoder[Any](way).feed(line + b"\n")
    return str(caught.value)


@pytest.mark.parametrize("kind", WAYS, ids=kind_of)
@settings(max_examples=20)
@given(data=st.data())
def test_a_message_crosses_as_a_line_of_its_kind(kind: type[Any], data: st.DataObject) -> None:
    message, decoder = data.draw(some(kind)), Decoder[Any](WAYS[kind])
    line = encode(message)
    assert [*json.loads(line)] == [kind_of(kind)]
    cut = data.draw(st.integers(0, len(line) - 1))
    assert decoder.feed(line[:cut]) == []
    # NaN is not equal to itself
    assert repr(decoder.feed(line[cut:] + b"\n" + line)) == repr([message, message])


@pytest.mark.parametrize("kind", WAYS, ids=kind_of)
@settings(max_examples=1)
@given(data=st.data())
def test_unknown_missing_and_wrong_fields_are_refused(kind: type[Any], data: st.DataObject) -> None:
    name, hints = kind_of(kind), hints_of(kind)

    def refused(body: dict[str, Any]) -> str:
        return refusal(WAYS[kind], json.dumps({name: body}).encode())

    body = json.loads(encode(data.draw(some(kind))))[name]
    assert refused(body | {"hue": 1}) == f"{name} has no hue"
    for field in fields(kind):
        rest = {key: value for key, value in body.items() if key != field.name}
        if field.default is field.default_factory is MISSING:
            assert refused(rest) == f"{name} lacks {field.name}"
        if hints[field.name] != OPEN:
            assert field.name in refused(rest | {field.name: {"a": [], "b": 2}})


@pytest.mark.parametrize("way", [ToProcess, FromProcess])
def test_kinds_of_the_other_way_are_unknown(way: Any) -> None:
    kinds = ", ".join(map(kind_of, get_args(way)))
    for name in (*(kind_of(kind) for kind, its in WAYS.items() if its is not way), "nonsense"):
        assert refusal(way, json.dumps({name: {}}).encode()) == f"message of kind {name!r}: choose from {kinds}"


@pytest.mark.parametrize(
    "line", [b"5", b"[]", b"{}", b'{"stop":{},"go":{}}', b'{"stop":true}', b'{"stop":[]}', b"\xff"]
)
def test_other_lines_are_refused(line: bytes) -> None:
    said = refusal(ToProcess, line)
    assert said.endswith("is no message: must be a JSON object") or ": must be an object" in said


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"host": "h3"}, "agent_config.host is 'h3': must be h1 or h2"),
        ({"seed": True}, "agent_config.seed is True: must be int"),
        ({"namespace": 5}, "agent_config.namespace is 5: must be str"),
        ({"probe_interval_ms": 0}, "probe_interval_ms must be above 0"),
        ({"workloads": {}}, "agent_config.workloads is {}: must be an array"),
        ({"workloads": [{"bulk": {}}]}, "a bulk needs bytes or duration_s"),
        ({"workloads": [{"bulk": {"bytes": 1.5}}]}, "bulk.bytes is 1.5: must be int"),
        ({"workloads": [{"flood": {}}]}, f"agent_config.workloads of kind 'flood': choose from {', '.join(WORKLOADS)}"),
    ],
)
def test_a_wrong_value_names_its_field(change: dict[str, Any], complaint: str) -> None:
    good = {"host": "h1", "peer": "10.77.2.2"}
    [config] = Decoder[Any](ToProcess).feed(json.dumps({"agent_config": good}).encode() + b"\n")
    assert config == AgentConfig(host="h1", peer="10.77.2.2")
    assert refusal(ToProcess, json.dumps({"agent_config": good | change}).encode()) == complaint
