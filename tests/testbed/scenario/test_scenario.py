"""Scenarios: what loads, what `--set` changes, and one line for everything else."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from channel.replay import Outcome, Trace
from channel.trace import write_trace
from linklayer.slacp import SlacpConfig
from testbed.results.store import RunFolder
from testbed.scenario import schema
from testbed.scenario.file import load, validate
from testbed.scenario.plugin_options import Part
from testbed.scenario.resolver import resolve
from testbed.scenario.schema import Scenario, error_part
from testbed.scenario.settings import ScenarioError
from tests.harness.live_runs import Capture, refused

ROOT = Path(__file__).parents[3]
SHIPPED = sorted((ROOT / "scenarios").glob("*.yaml"))
LOSSY = ROOT / "scenarios" / "lossy-link.yaml"
MINIMAL: Mapping[str, Any] = {
    "name": "small",
    "channel": {"rate_bps": 1_000_000, "delay_ms": 10},
    "workloads": [{"kind": "bulk", "bytes": 1000}],
}


def write(folder: Path, values: Any, name: str = "case.yaml") -> Path:
    path = folder / name
    path.write_text(yaml.safe_dump(values))
    return path


def minimal(**values: Any) -> dict[str, Any]:
    return {**MINIMAL, **values}


def with_channel(**values: Any) -> dict[str, Any]:
    return minimal(channel={**MINIMAL["channel"], **values})


def with_workload(**values: Any) -> dict[str, Any]:
    return minimal(workloads=[{**MINIMAL["workloads"][0], **values}])


def sound_trace(path: Path) -> Path:
    write_trace(path, Trace([0, 1_000_000, 2_000_000], [100] * 3, [Outcome.OK, Outcome.MISSED, Outcome.OK]))
    return path


def test_defaults() -> None:
    scenario = validate(dict(MINIMAL), "here")
    assert (scenario.tier, scenario.seed, scenario.tcp, scenario.mtu) == ("emulated", 1, "cubic", 1500)
    assert scenario.link.scheme == "slacp"
    assert scenario.link.fast.protocols == {17}
    assert scenario.channel.errors == error_part("none")
    assert scenario.trace is True
    [work] = scenario.make_workloads()
    assert (work.flow, work.port, work.direction) == ("bulk", 5001, "up")


def test_workloads_get_ports_and_names_of_their_own() -> None:
    raw = minimal(workloads=[{"kind": "bulk", "bytes": 1}, {"kind": "short"}, {"kind": "bulk", "bytes": 1}])
    made = validate(raw, "here").make_workloads()
    assert [(work.flow, work.port) for work in made] == [("bulk1", 5001), ("short2", 6001), ("bulk3", 7001)]


def test_the_acknowledgement_timer_follows_from_the_link() -> None:
    satellite = load(ROOT / "scenarios" / "satellite.yaml")
    full_ms = resolve(satellite).stations["down"].link.frame_ms
    assert full_ms == pytest.approx(-(-(satellite.max_frame_bytes + 8) // 48) * 424 / 128)
    assert SlacpConfig(frame_ms=1).ack_timer_ns == 50_000_000
    assert SlacpConfig(frame_ms=full_ms).ack_timer_ns == round(5e6 * full_ms)
    assert SlacpConfig(ack_timer_ms=7, frame_ms=full_ms).ack_timer_ns == 7_000_000


def test_a_direction_takes_what_it_does_not_say_from_both() -> None:
    scenario = validate(with_channel(errors="high", up={"rate_bps": 5000}, down={"delay_ms": 3, "errors": "low"}), "x")
    up, down = scenario.channel.direction("up"), scenario.channel.direction("down")
    assert (up.rate_bps, up.delay_ms, up.errors) == (5000, 10, error_part("high"))
    assert (down.rate_bps, down.delay_ms, down.errors) == (1_000_000, 3, error_part("low"))


def test_per_is_short_for_bernoulli_in_both_or_one_direction() -> None:
    bernoulli, high = error_part("bernoulli", per=0.2), error_part("high")
    for raw, expected in (
        (with_channel(per=0.2), (bernoulli, bernoulli)),
        (with_channel(errors="high", down={"per": 0.2}), (high, bernoulli)),
        (with_channel(per=0.2, up={"errors": "high"}), (high, bernoulli)),
    ):
        channel = validate(raw, "x").channel
        assert (channel.direction("up").errors, channel.direction("down").errors) == expected


@pytest.mark.parametrize(
    ("setting", "key", "value"),
    [
        ("link.scheme=none", "link.scheme", "none"),
        ("channel.rate_bps=2e6", "channel.rate_bps", 2_000_000),
        ("channel.rate_bps=2.5e+5", "channel.rate_bps", 250_000),
        ("channel.delay_ms=1e-1", "channel.delay_ms", 0.1),
        ("workloads.0.duration_s=3", "workloads.0.duration_s", 3),
        ("trace=no", "trace", False),
        ("channel.errors=high", "channel.errors.model", "high"),
        ("channel.errors.model=high", "channel.errors.model", "high"),
        ("channel.errors={model: bursts, burst_frames: 3}", "channel.errors.burst_frames", 3),
        ("channel.errors.per=0.3", "channel.errors.per", 0.3),
        ("channel.assignment=vbdc", "channel.assignment.kind", "vbdc"),
        ("link.slacp.in_order=false", "link.slacp.in_order", False),
        ("link.fast.dscp=[1, 2]", "link.fast.dscp", frozenset({1, 2})),
        ("description=a = b", "description", "a = b"),
    ],
)
def test_set(setting: str, key: str, value: object) -> None:
    found: Any = load(LOSSY, [setting])
    for part in key.split("."):
        found = found[int(part)] if part.isdecimal() else getattr(found, part)
    assert found == value
    assert type(found) is type(value) or isinstance(value, int)


@pytest.mark.parametrize(
    ("settings", "up", "down"),
    [
        (["channel.errors=high", "channel.errors.model=bernoulli", "channel.errors.per=0.25"], 0.25, 0.25),
        (["channel.per=0.4"], 0.4, 0.4),
        (["channel.errors=null", "channel.per=0.4"], 0.4, 0.4),
        (["channel.down.per=0"], 0.05, 0),
    ],
)
def test_set_error_rates(settings: list[str], up: float, down: float) -> None:
    channel = load(LOSSY, ["channel.down.rate_bps=5e5", *settings]).channel
    assert (channel.direction("up").rate_bps, channel.direction("up").errors) == (
        2_000_000,
        error_part("bernoulli", per=up),
    )
    assert (channel.direction("down").rate_bps, channel.direction("down").errors) == (
        500_000,
        error_part("bernoulli", per=down),
    )


def test_set_over_a_name_keeps_the_name() -> None:
    queue: Any = load(LOSSY, ["link.queue=red", "link.queue.max_p=0.5"]).link.queue
    assert (queue.kind, queue.max_p) == ("red", 0.5)
    for key, words in (
        ("errors.per", r"channel\.errors\.per: is no key here"),
        ("per", "per and errors high are both"),
    ):
        with pytest.raises(ScenarioError, match=words):
            load(LOSSY, ["channel.errors=high", f"channel.{key}=0.5"])


def test_later_settings_win_and_a_setting_beside_its_option_is_refused() -> None:
    scenario = load(LOSSY, ["seed=2", "seed=3", "tcp.growth=bbr3"], tier="model", tcp="reno", seed=None)
    assert (scenario.seed, scenario.tier, scenario.tcps) == (3, "model", "reno growth.name=bbr3")
    for settings, options in ((["tier=model"], {"tier": "vusrp"}), (["tcp.profile=sack"], {"tcp": "reno"})):
        with pytest.raises(ScenarioError, match=r"is given twice, .* leave one out"):
            load(LOSSY, settings, **options)


def test_a_line_that_quotes_a_long_value_has_its_begin_and_its_end(tmp_path: Path, capsys: Capture) -> None:
    path = write(tmp_path, minimal(tier="m" * 5000))
    line = refused(capsys, "run", path)
    assert line.startswith(f"fadelab: {path}: tier: ")
    assert "mmm … mmm" in line
    assert len(line) < 1100


def test_exponents_are_numbers_in_a_file_too(tmp_path: Path) -> None:
    path = tmp_path / "e.yaml"
    path.write_text("name: e\nchannel: {rate_bps: 2e6, delay_ms: 1}\nworkloads: [{kind: bulk, bytes: 1e3}]\n")
    scenario = load(path)
    assert scenario.channel.rate_bps == 2_000_000
    assert type(scenario.channel.rate_bps) is int


VARIED = [
    [],
    ["channel.per=0.1"],
    ["channel.errors=null", "channel.per=0.1", "channel.up.rate_bps=5e5", "channel.down.errors=high"],
    ["channel.per=null", "channel.errors={model: uniform, good_ms: [1, 2], bad_ms: [3, 4]}", "channel.assignment=rbdc"],
    ["link.fast.dscp=[3, 2, 1]", "channel.excess_delay={probability: 0.1, hold_ms: 50}", "trace=false"],
    ["link.slacp={redundancy: 0.5, in_order: false, ack_timer_ms: 20}", "workloads.0.start_s=3"],
]


@pytest.mark.parametrize("settings", VARIED, ids=lambda settings: "+".join(settings)[:40] or "as shipped")
@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_there_and_back(path: Path, settings: list[str], tmp_path: Path) -> None:
    if any(setting.startswith("channel.per") for setting in settings):
        settings = ["channel.errors=null", *settings]
    scenario = load(path, settings)
    assert scenario.name == path.stem
    assert scenario.description
    whole = scenario.model_dump(mode="json", exclude_none=True)
    assert validate(json.loads(json.dumps(whole)), "json") == scenario
    stored = RunFolder.create(tmp_path, scenario).path / "scenario.yaml"
    assert load(stored) == scenario
    assert yaml.safe_load(stored.read_text()) == whole
    assert validate(json.loads(json.dumps(scenario.plain())), "station") == scenario


def test_a_relative_trace_starts_at_the_scenarios_folder(tmp_path: Path) -> None:
    trace = sound_trace(tmp_path / "air.parquet")
    errors = {"model": "trace", "path": "air.parquet"}
    for values in (with_channel(errors=errors), with_channel(up={"errors": {**errors, "by": "index"}})):
        scenario = load(write(tmp_path, values))
        found = scenario.channel.direction("up").errors
        assert (found.model, found.model_dump()["path"]) == ("trace", trace)
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir(exist_ok=True)
        assert load(write(elsewhere, scenario.model_dump(mode="json", exclude_none=True))) == scenario


@pytest.mark.parametrize(
    "setting", ["channel.errors.path=air.parquet", "channel.errors={model: trace, path: air.parquet}"]
)
def test_a_relative_trace_of_a_setting_starts_where_one_stands(
    setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = sound_trace(tmp_path / "air.parquet")
    (tmp_path / "scenarios").mkdir()
    path = write(tmp_path / "scenarios", minimal())
    monkeypatch.chdir(tmp_path)
    errors = load(path, ["channel.errors.model=trace", setting]).channel.direction("up").errors
    assert errors.model_dump()["path"] == trace


#: YAML has keys that are no words
NO_WORD: dict[Any, Any] = {5: 5}
#: the scenario, the key that must be named, a piece of the explanation
WRONG: list[tuple[dict[str, Any], str, str]] = [
    (minimal(chanel={}), "chanel", "did you mean channel?"),
    (with_channel(rate_bsp=1), "channel.rate_bsp", "did you mean rate_bps?"),
    (with_channel(up={"rate_bsp": 1}), "channel.up.rate_bsp", "did you mean rate_bps?"),
    (minimal(per=0.1), "per", "is no key here"),
    # a key with the name of a model is named, and the model's keys are
    (minimal(channel={"errors": {"model": "trace", "trace": "a"}}), "channel.errors.trace", ", path, per)"),
    ({k: v for k, v in MINIMAL.items() if k != "channel"}, "channel", "is missing"),
    (minimal(channel={"delay_ms": 1}), "channel.rate_bps", "is missing"),
    (with_channel(rate_bps=-1), "channel.rate_bps", "greater than 0 (it is -1)"),
    (with_channel(rate_bps=1.5), "channel.rate_bps", "valid integer"),
    (with_channel(per=2), "channel.per", "less than or equal to 1 (it is 2)"),
    (with_channel(up={"per": 2}), "channel.up.per", "less than or equal to 1 (it is 2)"),
    (with_channel(per=float("nan")), "channel.per", "nan"),
    (with_channel(delay_ms=float("inf")), "channel.delay_ms", "finite"),
    (with_channel(rate_bps=float("inf")), "channel.rate_bps", "finite"),
    (minimal(link={"scheme": "barq"}), "link: scheme 'barq'", "choose from arq, fec, hybrid, "),
    (minimal(tcp="vegas"), "tcp 'vegas'", "enhanced-daass, or of our own TCPs user:bbr3, "),
    (
        minimal(tier="model", tcp="cubic"),
        "tcp 'cubic' cannot run on tier model",
        "which has no kernel (did you mean sack-cubic or sack-cubic-linux?): choose from bbr3, bsd, ",
    ),
    (minimal(tier="model", tcp="bbr"), "tcp 'bbr'", "(did you mean bbr3 or sack-bbr3?)"),
    ({**{key: MINIMAL[key] for key in MINIMAL if key != "channel"}, "chanel": {}}, "chanel", "did you mean channel?"),
    (minimal(tcp="sack"), "tcp 'sack'", "user:sack"),
    (minimal(tcp="user:cubic"), "tcp 'user:cubic'", "user:sack"),
    (
        minimal(tier="model", tcp="reference", receive_buffer_bytes=65536),
        "receive_buffer_bytes: reference: receive_buffer is 65536",
        "must be 65535 at most",
    ),
    (minimal(tcp_h2="vegas"), "tcp_h2 'vegas'", "user:sack"),
    (minimal(tier="model", tcp="sack", tcp_h2="cubic"), "tcp_h2 'cubic' cannot run on tier model", "sack-ecn"),
    (
        minimal(tcp="user:sack", workloads=[{"kind": "bulk", "bytes": 1000, "congestion_control": "reno"}]),
        "workloads.0.congestion_control is the kernel's",
        "the sender's tcp 'user:sack' is our own: leave it out",
    ),
    (minimal(tier="moon"), "tier", "'emulated'"),
    (with_channel(errors="worst"), "channel.errors", "'worst' is unknown: choose from 'bern"),
    (with_channel(down={"errors": "worst"}), "channel.down.errors", "'worst' is unknown"),
    (with_channel(errors={"per": 0.1}), "channel.errors.model", "is missing"),
    (with_channel(errors=5), "channel.errors", "must be a mapping of keys to values, not 5"),
    (with_channel(per=0.1, errors="high"), "channel", "per and errors high are both given"),
    (with_channel(up={"per": 0.1, "errors": "high"}), "channel: up", "both per and errors"),
    (with_channel(up=5), "channel.up", "must be a mapping of keys to values, not 5"),
    (minimal(channel=5), "channel", "must be a mapping of keys to values, not 5"),
    (minimal(link="none"), "link", "must be a mapping of keys to values, not 'none'"),
    (minimal(trace="maybe"), "trace", "valid boolean"),
    (
        with_channel(errors={"model": "uniform", "good_ms": [5, 1], "bad_ms": [0, 1]}),
        "channel.errors.good_ms",
        "shortest comes first",
    ),
    (with_channel(errors={"model": "uniform", "good_ms": [0, 0], "bad_ms": [0, 0]}), "channel.errors", "both 0"),
    (with_channel(assignment={"kind": "vbdc", "superframe_ms": 300}), "channel.assignment", "superframe_ms is 300"),
    (with_channel(rate_bps=1000, assignment="rbdc"), "channel.up", "rate_bps is 1000"),
    (with_channel(mac_buffer_bytes=1500), "channel.mac_buffer_bytes", "must hold a frame of 1534 bytes"),
    (with_channel(down={"mac_buffer_bytes": 9}), "channel.down.mac_buffer_bytes", "must hold a frame of 1534 bytes"),
    (minimal(link={"slacp": {"block_frames": 200}}), "link.slacp", "255 frames a block"),
    (minimal(workloads=[]), "workloads", "needs 1 entry at least"),
    (minimal(workloads=5), "workloads", "must be a list, not 5"),
    (minimal(workloads=[5]), "workloads.0", "must be a mapping"),
    (minimal(workloads=[{"kind": "video"}]), "workloads.0", "'video' is unknown"),
    (minimal(workloads=[{"kind": "bulk"}]), "workloads.0", "needs bytes or duration_s"),
    (with_workload(bytes=0), "workloads.0.bytes", "greater than 0 (it is 0)"),
    (
        minimal(workloads=[{"kind": "onoff-udp", "packet_bytes": 43, "duration_s": 1}]),
        "workloads.0.packet_bytes",
        "greater than or equal to 44 (it is 43)",
    ),
    (with_workload(port=70_000), "workloads.0.port", "less than 65536 (it is 70000)"),
    (with_workload(port=65_535, flows=2), "workloads.0", "end above 65535"),
    (
        minimal(workloads=[{"kind": "bulk", "bytes": 1, "port": 9, "flows": 3}, {"kind": "short", "port": 11}]),
        "workloads",
        "bulk1-3 and short2 both use port 11",
    ),
    (
        minimal(workloads=[{"kind": "bulk", "bytes": 1, "flow": "a"}, {"kind": "short", "flow": "a"}]),
        "workloads",
        "two flows are called a",
    ),
    (minimal(name="../up"), "name", "pattern"),
    (minimal(seed=-1), "seed", "greater than or equal to 0"),
    (minimal(link={"fast": {"dscp": [64]}}), "link.fast.dscp.0", "less than or equal to 63"),
    (
        with_channel(errors={"model": "trace", "path": "none.parquet"}),
        "channel.up.errors.path",
        "none.parquet: no such trace",
    ),
    ({**MINIMAL, **NO_WORD}, "not valid YAML", "a key is no text: put 5 in quotes"),
]


@pytest.mark.parametrize(("raw", "key", "explanation"), WRONG, ids=[f"{key}: {words}" for _, key, words in WRONG])
def test_one_line_names_file_and_key(
    raw: dict[str, Any], key: str, explanation: str, tmp_path: Path, capsys: Capture
) -> None:
    path = write(tmp_path, raw)
    line = refused(capsys, "run", path, "--out", tmp_path / "runs")
    assert line.startswith(f"fadelab: {path}: {key}")
    assert explanation.lower() in line.lower()
    assert not re.search(r"pydantic|validat(e|ion)|instance of|dictionary", line)
    assert not (tmp_path / "runs").exists()


FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is empty"),
    "only a comment": (b"# nothing\n", "is empty"),
    "not YAML": (b"name: [1, 2\n", "not valid YAML"),
    "a tag from elsewhere": (b"name: !!python/object:os.system {}\n", "not valid YAML"),
    "a list": (b"- 1\n- 2\n", "holds one list"),
    "a word": (b"hello\n", "holds one str"),
    "binary": (bytes(range(256)), "is YAML text"),
    "control characters": (b"name: \x00\x01\n", "not valid YAML"),
}


@pytest.mark.parametrize(("content", "explanation"), FILES.values(), ids=FILES)
def test_a_file_that_is_no_scenario(content: bytes, explanation: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "case.yaml"
    path.write_bytes(content)
    line = refused(capsys, "run", path)
    assert line.startswith(f"fadelab: {path}: ")
    assert explanation in line


def test_a_path_that_is_no_file(tmp_path: Path, capsys: Capture) -> None:
    assert f"{tmp_path}: cannot be read: Is a directory" in refused(capsys, "run", tmp_path)
    line = refused(capsys, "run", missing := LOSSY.with_name("lossy.yaml"))
    assert line.startswith(f"fadelab: {missing}: no such scenario")
    # its neighbours
    assert str(LOSSY) in line


@pytest.mark.parametrize("keep", [0, 4, 100, -1])
def test_a_trace_that_is_cut_short(keep: int, tmp_path: Path, capsys: Capture) -> None:
    trace = sound_trace(tmp_path / "air.parquet")
    trace.write_bytes(trace.read_bytes()[:keep])
    path = write(tmp_path, with_channel(down={"errors": {"model": "trace", "path": "air.parquet"}}))
    line = refused(capsys, "run", path)
    assert line.startswith(f"fadelab: {path}: channel.down.errors.path: {trace}: not a complete Parquet file")


@pytest.mark.parametrize(
    ("setting", "explanation"),
    [
        ("channel.per", "must be key=value"),
        ("=1", "must be key=value"),
        ("channel.per=[", "not valid YAML"),
        ("workloads.1.bytes=5", "'1' is no index into 1 entries"),
        ("workloads.-1.bytes=5", "'-1' is no index"),
        ("workloads.²=5", "'²' is no index"),
        ("workloads.kind=bulk", "'kind' is no index"),
        ("chanel.per=1", "chanel: unknown key (did you mean channel?)"),
        ("channel.per=much", "channel.per"),
        (".=1", "unknown key"),
    ],
)
def test_a_setting_that_cannot_be(setting: str, explanation: str, capsys: Capture) -> None:
    assert explanation in refused(capsys, "run", LOSSY, "--set", setting)


def test_a_setting_below_a_plain_list(tmp_path: Path, capsys: Capture) -> None:
    path = write(tmp_path, minimal(link={"fast": {"dscp": [1]}}))
    assert "0 is 1 and has no keys" in refused(capsys, "run", path, "--set", "link.fast.dscp.0.x=1")


@pytest.mark.parametrize(("tier", "tcp"), [("emulated", "cubic"), ("vusrp", "cubic"), ("model", "sack")])
def test_default_tcp_depends_on_the_tier(tier: str, tcp: str) -> None:
    assert load(LOSSY, tier=tier).tcp == tcp


def test_hosts_speak_one_tcp_or_each_their_own() -> None:
    both = Scenario.model_validate(minimal(tcp="user:sack"))
    assert (both.tcp_of("h1"), both.tcp_of("h2"), both.tcps) == ("user:sack", "user:sack", "user:sack")
    each = Scenario.model_validate(minimal(tcp="user:sack", tcp_h2="cubic"))
    assert (each.tcp_of("h1"), each.tcp_of("h2"), each.tcps) == ("user:sack", "cubic", "user:sack and cubic")


def test_the_document_has_every_key() -> None:
    text = (ROOT / "docs" / "scenarios.md").read_text()
    documented = set(re.findall(r"`([a-z0-9_]+)`", text))
    models = [part for part in vars(schema).values() if isinstance(part, type) and issubclass(part, Part)]
    # options of plugins have tables made of their declarations
    keys = {name for part in models for name in part.model_fields if name not in schema.LINK_PARTS}
    assert keys - documented == set()


def test_the_documents_examples_load(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "scenarios.md").read_text()
    examples = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert examples
    sound_trace(tmp_path / "trace-up.parquet")
    for example in examples:
        raw = yaml.safe_load(example)
        values = raw if "name" in raw else {**MINIMAL, **raw}
        if "channel" in raw and "name" not in raw:
            values["channel"] = {**MINIMAL["channel"], **raw["channel"]}
        assert isinstance(load(write(tmp_path, values)), Scenario)
