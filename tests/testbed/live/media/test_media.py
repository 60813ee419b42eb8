"""What joins the stations of live runs."""

import math
import os
import threading
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from channel.delay_profiles import profile
from flowgraphs.air import Air, Link
from flowgraphs.phys import make_phy
from testbed.live.media import MEDIA, RadioContext, Wiring, medium_of
from testbed.scenario.resolver import resolve
from testbed.scenario.run_plan import Plan
from testbed.tiers import TIERS
from tests.harness.radios import needs_vusrp
from tests.harness.scenarios import scenario

pytestmark = pytest.mark.patient

#: what a run on virtual radios is made of here: the directions differ in everything that can
CHANNEL: dict[str, Any] = {
    "snr_db": 13.0,
    "cfo_hz": 150.0,
    "fading": {"profile": "eva", "doppler_hz": 5.0},
    "down": {"snr_db": 31.5, "cfo_hz": -40.0, "fading": {"profile": "rician", "k_db": 8.0, "doppler_hz": 2.0}},
}


def on_tier(tier: str, **changes: Any) -> Plan:
    return resolve(scenario(tier=tier, **changes))


def air_of(wiring: Wiring) -> str:
    """The name of the air in a device's arguments."""
    return str(dict(part.split("=") for part in wiring.config["device"].split(","))["air"])


def made(**changes: Any) -> tuple[Air, dict[str, Link], dict[str, str]]:
    """What a virtual air was like, its links by direction, and the devices."""
    with medium_of(told := on_tier("vusrp", seed=77, **changes)).open(told) as wirings:
        [name] = {air_of(wiring) for wiring in wirings.values()}
        with Air.open(name) as air:
            assert (air.clock, air.seed, air.devices()) == ("realtime", 77, [])
            links = {"up": air.link("ST:0", "BAS:0"), "down": air.link("BAS:0", "ST:0")}
    assert name not in Air.names()
    assert not any(wiring.fds for wiring in wirings.values())
    return air, links, {side: wiring.config["device"] for side, wiring in wirings.items()}


@needs_vusrp
def test_the_paths_are_what_the_channel_says() -> None:
    air, links, devices = made(channel=CHANNEL)
    assert devices == {"up": f"type=vusrp,air={air.name},serial=ST", "down": f"type=vusrp,air={air.name},serial=BAS"}
    assert links["up"].taps == profile("eva", doppler_hz=5.0)
    assert links["down"].taps == profile("rician", doppler_hz=2.0, k_db=8.0)
    assert (links["up"].cfo_hz, links["down"].cfo_hz) == (150.0, -40.0)
    assert all((link.delay_ns, link.normalise, link.series) == (0.0, True, None) for link in links.values())


@needs_vusrp
@pytest.mark.parametrize(
    ("radio", "tx_gain_db"), [({}, 30.0), ({"tx_gain_db": 10.0}, 10.0), ({"rate_sps": 5e6, "modulation": "qam16"}, 30)]
)
def test_the_gains_give_the_snr_that_is_asked_for(radio: dict[str, Any], tx_gain_db: float) -> None:
    _, links, _ = made(channel=CHANNEL, radio=radio)
    rate_sps = radio.get("rate_sps", 2.5e6)
    rms = make_phy("ofdm", rate_sps=rate_sps, modulation=radio.get("modulation", "qpsk")).rms
    # full scale leaves with -40 dBm and the gain; noise is kT at 290 K in the whole band and a figure of 6 dB
    sent_dbm = -40 + tx_gain_db + 20 * math.log10(rms)
    noise_dbm = -168 + 10 * math.log10(rate_sps)
    for side, snr_db in (("up", 13.0), ("down", 31.5)):
        assert sent_dbm + links[side].gain_db - noise_dbm == pytest.approx(snr_db, abs=1e-9)


@needs_vusrp
def test_without_fading_there_is_one_steady_path() -> None:
    _, links, _ = made(channel={"snr_db": 20})
    assert links["up"] == links["down"] == Link(gain_db=links["up"].gain_db)


@needs_vusrp
def test_an_air_goes_with_its_run_whatever_happens() -> None:
    names: list[str] = []

    def fail() -> None:
        with medium_of(told := on_tier("vusrp")).open(told) as wirings:
            names.append(air_of(wirings["up"]))
            assert names[0] in Air.names()
            raise RuntimeError("a station has failed")

    with pytest.raises(RuntimeError, match="a station has failed"):
        fail()
    assert names[0] not in Air.names()


@needs_vusrp
def test_runs_of_the_same_scenario_have_airs_of_their_own() -> None:
    told = on_tier("vusrp")
    with medium_of(told).open(told) as one, medium_of(told).open(told) as two:
        assert air_of(one["up"]) != air_of(two["up"])
        assert all(f"-{os.getpid()}-" in air_of(wirings["up"]) for wirings in (one, two))


def test_real_radios_are_those_that_are_named() -> None:
    told = on_tier("usrp", radio={"devices": ["serial=1", "addr=10.0.0.2"]})
    with medium_of(told).open(told) as wirings:
        assert wirings == {"up": Wiring({"device": "serial=1"}), "down": Wiring({"device": "addr=10.0.0.2"})}


@pytest.mark.parametrize(
    ("told", "message"),
    [
        (on_tier("usrp"), "tier usrp needs two radios: --device ARGS for ST and --device ARGS for BAS"),
        (on_tier("vusrp", radio={"devices": ["serial=1", "serial=2"]}), "radio.devices name real USRPs: run them with"),
        (on_tier("vusrp", channel={"rate_bps": 9_000_000}), "radio: ofdm qpsk at 2.5 Msps carries 2"),
        (
            on_tier("usrp", channel={"rate_bps": 9_000_000}, radio={"devices": ["a", "b"], "cabled": True}),
            "radio: ofdm qpsk at 2.5",
        ),
        (on_tier("usrp", radio={"devices": ["type=vusrp,serial=a", "b"]}), "USRP 'b': would radiate on 2408.75"),
    ],
    ids=["none", "real ones on a virtual air", "slow virtual ones", "slow real ones", "by antenna without a region"],
)
def test_radios_that_cannot_do_it_are_refused(told: Plan, message: str) -> None:
    with pytest.raises(RuntimeError) as caught:
        medium_of(told).check(told)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("devices", [None, ["serial=1", "serial=2"]])
def test_without_radios_nothing_is_asked_of_them(devices: list[str] | None) -> None:
    slow = on_tier("emulated", channel={"rate_bps": 9_000_000}, radio={"devices": devices})
    medium_of(slow).check(slow)


def test_every_live_tier_has_its_medium() -> None:
    assert sorted(MEDIA) == sorted(tier.medium for tier in TIERS.values() if tier.medium is not None)


@pytest.mark.parametrize("clock", ["wall", "virtual"])
def test_a_trace_is_written_aside_where_frames_can_be_late(clock: str, tmp_path: Path) -> None:
    def threads() -> set[str]:
        return {thread.name for thread in threading.enumerate() if thread.name.startswith("trace")}

    plan = SimpleNamespace(trace=True, clock=clock, tier=SimpleNamespace(name="emulated"))
    before = threads()
    with ExitStack() as stack:
        context: Any = SimpleNamespace(plan=plan, folder=tmp_path, stack=stack)
        trace = RadioContext.open_trace(context, "up")
        assert trace is not None
        assert len(threads() - before) == (clock == "wall")
    assert threads() == before
    assert (tmp_path / "trace-up.parquet").exists()
