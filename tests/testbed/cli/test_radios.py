"""The command line around radios: airs, environment, recordings, one station, runs that cannot be."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gnuradio import blocks, gr

from channel.replay import Outcome
from channel.trace import read_trace
from common.units import number_of
from flowgraphs.air import Air
from flowgraphs.frontend import Receiver, end
from flowgraphs.levels import path_gain_db
from flowgraphs.phys import make_phy
from flowgraphs.transceiver import Transceiver
from hosts.kernel.ownership import Registry
from testbed.cli import app
from testbed.cli.options import device_settings
from testbed.errors import FadelabError
from testbed.running import unused
from testbed.scenario.file import load
from tests.harness.live_runs import ROOT, Capture, done, fadelab, finish, refused, start
from tests.harness.radios import CARRIER_HZ, RATE_SPS, air_name, needs_vusrp, on, quiet_air
from tests.harness.recordings import write
from tests.harness.scenarios import scenario
from tests.harness.waiting import wait_for
from tests.hosts.harness import needs_network

pytestmark = [pytest.mark.realtime, pytest.mark.light]

LOSSY = "scenarios/lossy-link.yaml"
#: of a recording that was made with no radio
OF_NO_RADIO: dict[str, Any] = {
    "rate_sps": RATE_SPS,
    "frequency_hz": CARRIER_HZ,
    "started": datetime(2026, 1, 2, tzinfo=UTC),
    "hardware": "none",
}


@pytest.fixture
def kept() -> Iterator[str]:
    """The name of an air that stays, made by `air create`."""
    name = air_name()
    assert app.main(["air", "create", name, "--seed", "4"]) == 0
    yield name
    Air.remove(name)


@needs_vusrp
def test_an_air_is_made_changed_and_removed(kept: str, capfd: Capture) -> None:
    settings = ("gain_db=-71.5", "delay_ns=2000", "cfo_hz=-150", "fading=eva", "doppler_hz=5", "noise_dbm_hz=-160")
    assert done(capfd, "air", "set", kept, *settings, "clock_ppm=2.5", "--from", "V1", "--to", "V2") == ""
    with Air.open(kept) as air:
        assert (air.clock, air.seed) == ("realtime", 4)
        link = air.link("V1", "V2")
        assert (link.gain_db, link.delay_ns, link.cfo_hz, len(link.taps)) == (-71.5, 2000, -150, 9)
        assert {tap.doppler_hz for tap in link.taps} == {5.0}
        assert (air.noise_dbm_hz("V2"), air.noise_dbm_hz("V1")) == (-160, -168)
        assert (air.clock_offset_ppm("V1"), air.clock_offset_ppm("V2")) == (2.5, 0)
        assert air.link("V2", "V1").gain_db == -60
        # what is not given stays
        done(capfd, "air", "set", kept, "gain_db=-80", "fading=none", "--from", "V1", "--to", "V2")
        link = air.link("V1", "V2")
        assert (link.gain_db, link.delay_ns, link.cfo_hz, link.taps) == (-80, 2000, -150, ())
    # made again it is the same one, as long as nothing else is asked for
    assert done(capfd, "air", "create", kept) == ""
    assert done(capfd, "air", "remove", kept) == ""
    assert kept not in Air.names()


@needs_vusrp
def test_an_air_is_made_as_a_scenario_has_it(capfd: Capture) -> None:
    path = ROOT / "scenarios" / "fading-link.yaml"
    channel, name = load(path).channel, air_name()
    try:
        assert done(capfd, "air", "create", name, "--scenario", path) == ""
        with Air.open(name) as air:
            rms = make_phy("ofdm", rate_sps=2.5e6).rms
            gain_db = path_gain_db(channel.snr_db, rate_sps=2.5e6, tx_gain_db=30, rms=rms)
            for tx, rx in (("ST", "BAS"), ("BAS", "ST")):
                link = air.link(tx, rx)
                assert link.gain_db == pytest.approx(gain_db)
                assert channel.fading is not None
                assert link.taps == channel.fading.taps()
    finally:
        Air.remove(name)


@needs_vusrp
def test_a_list_shows_radios_and_paths(capfd: Capture) -> None:
    with quiet_air() as air:
        air.set_link("V1", "V1", gain_db=-33.5, cfo_hz=40)
        receiver = Receiver(on(air, "V1"))
        shown = done(capfd, "air", "list").split(f"{air.name}  clock realtime, seed 1", 1)[1]
        del receiver
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    [radio] = [line for line in lines if line.startswith("V1 ") and str(os.getpid()) in line][:1]
    assert radio.endswith("2450 MHz -inf dBm/Hz 0 ppm")
    assert "V1 → V1 -33.5 dB 0 ns 40 Hz one, steady" in lines


@needs_vusrp
def test_clean_removes_airs_of_dead_programs_but_not_in_dry_run(
    kept: str, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    used, dead = air_name(), air_name()
    code = f"from flowgraphs.air import Air; air = Air.create({dead!r}); print('up', flush=True); input()"
    owner = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert owner.stdin is not None
    assert owner.stdout is not None
    assert owner.stdout.readline() == b"up\n"
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    owner.stdin.close()
    owner.stdout.close()
    ours = {kept, used, dead}
    monkeypatch.setattr(Registry, "leftovers", lambda registry: [])
    monkeypatch.setattr(Registry, "clean", lambda registry: [])
    names = Air.names
    monkeypatch.setattr(Air, "names", lambda: [name for name in names() if name in ours])
    with Air.create(used):
        assert set(Air.names()) == ours
        assert done(capfd, "clean", "--dry-run") == f"would remove air {dead}: no process uses it\n"
        assert set(Air.names()) == ours
        assert done(capfd, "clean") == f"removed air {dead}: no process uses it\n"
        assert set(Air.names()) == {kept, used}
        assert done(capfd, "clean") == "nothing to clean\n"


@needs_vusrp
def test_with_env_any_uhd_program_finds_virtual_radios() -> None:
    if shutil.which("uhd_find_devices") is None:
        pytest.skip("uhd_find_devices (uhd-host) is not installed")
    shell = f"""
        eval "$({shlex.quote(sys.executable)} -m testbed env)"
        echo "$GRC_BLOCKS_PATH"
        uhd_find_devices --args type=vusrp
    """
    clear = {key: value for key, value in os.environ.items() if key not in ("UHD_MODULE_PATH", "PYTHONPATH")}
    ran = subprocess.run(
        ["bash", "-c", shell], cwd=ROOT, env={**clear, "GRC_BLOCKS_PATH": "/of/others"}, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    # what there was before stays
    assert ran.stdout.splitlines()[0] == f"{ROOT}/flowgraphs/native/grc:{ROOT}/flowgraphs/grc:/of/others"
    assert "type: vusrp" in ran.stdout


def test_env_sets_paths_that_need_quotes(monkeypatch: pytest.MonkeyPatch, capfd: Capture) -> None:
    monkeypatch.setenv("FADELAB_ROOT", "/home/o'brien/my lab")
    exports = done(capfd, "env")
    script = f'unset UHD_MODULE_PATH; {exports}\nprintf %s "$UHD_MODULE_PATH"'
    ran = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "/home/o'brien/my lab/.build/vusrp/uhd"


@pytest.fixture
def short(tmp_path: Path) -> Path:
    """A recording in which nothing is to be heard."""
    write(tmp_path / "short", np.zeros(5000, np.complex64), **OF_NO_RADIO)
    return tmp_path / "short"


@needs_vusrp
def test_frames_are_recorded_decoded_and_transmitted_again(tmp_path: Path, capfd: Capture) -> None:
    phy = make_phy("ofdm", rate_sps=RATE_SPS)
    payloads = [bytes([number]) * 200 for number in range(25)]
    setup = ("--freq", str(CARRIER_HZ), "--rate", str(RATE_SPS), "--seconds", "1")
    with Air.create(air_name(), seed=1) as air:
        air.set_link("A", "B", gain_db=path_gain_db(30, rate_sps=RATE_SPS, tx_gain_db=30, rms=phy.rms))
        transceiver = Transceiver(on(air, "A", tx_hz=CARRIER_HZ, rx_hz=CARRIER_HZ + 5e6), phy)
        transceiver.start()
        try:
            recorder = start("record", tmp_path / "lab", "--device", on(air, "B").args, *setup)
            while recorder.poll() is None:
                wait_for(lambda: recorder.poll() is not None or any(device.serial == "B" for device in air.devices()))
                sent = frames_sent_by(transceiver)
                for payload in payloads:
                    transceiver.send(payload)
                # one round of frames after the other, until the recording has ended
                wait_for(sent)
            status, out, err = finish(recorder)
        finally:
            transceiver.close()
    assert status == 0, err
    capfd.readouterr()
    assert out == f"{tmp_path}/lab.sigmf-meta  1.000 s at 1 Msps\n"

    frames = [json.loads(line) for line in done(capfd, "replay", tmp_path / "lab", "--json").splitlines()]
    assert len(frames) >= len(payloads)
    assert all(frame["crc_ok"] and bytes.fromhex(frame["payload"]) in payloads for frame in frames)
    assert done(capfd, "replay", tmp_path / "lab", "--trace", tmp_path / "lab.parquet") == (
        f"ofdm qpsk: {len(frames)} frames heard, 0 of them damaged, 0 missed\n"
    )
    trace = read_trace(tmp_path / "lab.parquet")
    assert trace.outcome == [Outcome.OK] * len(frames)
    assert trace.time_ns == [round(frame["sample"] * 1e9 / RATE_SPS) for frame in frames]

    with quiet_air() as air:
        assert done(capfd, "replay", tmp_path / "lab", "--device", on(air, "A").args) == "transmitted 1.000 s\n"


@needs_vusrp
def test_a_transmission_whose_end_nobody_hears_of_says_so(
    tmp_path: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # what the device says is lost on its way
    monkeypatch.setattr(gr.top_block, "msg_connect", lambda *ports: None)
    write(tmp_path / "tone", np.full(300_000, 0.5, np.complex64), **OF_NO_RADIO)
    with quiet_air() as air:
        told = done(capfd, "replay", tmp_path / "tone", "--device", on(air, "A").args)
    assert told == "transmitted 0.300 s; the radio has not said that it is over: part of it may be missing\n"


@needs_vusrp
def test_a_transmission_that_ran_dry_says_so(tmp_path: Path) -> None:
    write(tmp_path / "tone", np.full(3_000_000, 0.5, np.complex64), **OF_NO_RADIO)
    with quiet_air() as air:
        air.set_link("A", "B", gain_db=-40)
        hearer = Receiver(on(air, "B"))
        top, level = gr.top_block(), blocks.probe_signal_c()
        top.connect(hearer.block, level)
        top.start()
        try:
            process = start("replay", tmp_path / "tone", "--device", on(air, "A").args)
            wait_for(lambda: level.level() != 0)
            process.send_signal(signal.SIGSTOP)
            wait_for(lambda: level.level() == 0)
            process.send_signal(signal.SIGCONT)
            status, out, err = finish(process)
        finally:
            end(top)
            hearer.close()
    # what was to be heard meanwhile is late, and left out: L
    assert (status, err[0], err.strip("UL")) == (0, "U", "")
    assert out == f"transmitted 3.000 s, with {number_of(len(err), 'underflow')}: this machine did not keep up\n"


def frames_sent_by(transceiver: Transceiver) -> Callable[[], bool]:
    """Whether the device has taken samples since the last look and takes none now."""
    taken = [transceiver.tx.block.nitems_read(0), 0]

    def idle() -> bool:
        taken.append(transceiver.tx.block.nitems_read(0))
        return taken[-1] == taken[-2] > taken[0]

    return idle


@pytest.mark.patient
def test_devices_come_in_pairs() -> None:
    assert device_settings(()) == ()
    assert device_settings(("serial=1", "addr=10.0.0.2")) == ('radio.devices=["serial=1", "addr=10.0.0.2"]',)
    with pytest.raises(FadelabError, match="--device is given 3 times"):
        device_settings(("a", "b", "c"))


@pytest.mark.patient
@pytest.mark.parametrize(
    ("tier", "changes", "lines"),
    [
        ("emulated", {}, []),
        # every default said, as in a stored scenario
        ("emulated", {"channel": {"snr_db": 40.0, "cfo_hz": 0.0}}, []),
        ("emulated", {"channel": {"snr_db": 12}}, ["tier emulated has no use for channel.snr_db: there is no radio"]),
        (
            "usrp",
            {"channel": {"down": {"snr_db": 12, "fading": "eva"}}, "radio": {"devices": ["a", "b"]}},
            ["tier usrp has no use for channel.snr_db, channel.fading: the air is the real one"],
        ),
        (
            "emulated",
            {"channel": {"up": {"cfo_hz": 1}}, "radio": {"devices": ["a", "b"]}},
            ["tier emulated has no use for channel.cfo_hz, radio.devices: there is no radio"],
        ),
        ("vusrp", {"channel": {"snr_db": 12, "fading": "eva", "cfo_hz": 3}}, []),
    ],
)
def test_options_unused_by_tier_are_named(tier: str, changes: dict[str, Any], lines: list[str]) -> None:
    assert [*unused(scenario(tier=tier, **changes))] == lines


@pytest.mark.net
@needs_network[1]
def test_unused_options_are_a_warning_of_run(tmp_path: Path) -> None:
    small = ("--set", "channel.snr_db=12", "--set", "workloads.0.duration_s=0.3", "--set", "channel.delay_ms=2")
    status, out, err = fadelab("run", LOSSY, "--json", "--allow-late", "--out", tmp_path, *small)
    assert status == 0, err
    assert err.splitlines()[0] == "warning: tier emulated has no use for channel.snr_db: there is no radio"
    assert json.loads(out)["tier"] == "emulated"


#: KEPT: an air; SHORT: a recording; LAB, OUT: places where there is nothing; DEVICE: a radio on no air; AWAY: a folder,
#: which a station has begun to use when it finds that its radio cannot be
WRONG = [
    ("air create KEPT --seed 5", "has seed=4, not seed=5"),
    ("air create KEPT --clock lockstep", "has clock realtime, not lockstep"),
    ("air create KEPT-new --clock sundial", "'sundial' is not one of 'realtime', 'lockstep'"),
    ("air create KEPT-new --seed -1", "-1 is not in the range x>=0"),
    ("air create KEPT-new --seed 4294967296", "must lie between 0 and 4294967295"),
    ("air set KEPT-not gain_db=-80", "there is no air 'KEPT-not'"),
    ("air set KEPT", "Missing argument 'KEY=VALUE...'"),
    ("air set KEPT gain_db", "gain_db: must be KEY=VALUE, as in gain_db=-80"),
    ("air set KEPT gain=-80", "gain: unknown; there are gain_db, delay_ns, cfo_hz"),
    ("air set KEPT gain_db=low", "gain_db=low: must be a number"),
    ("air set KEPT gain_db=nan", "gain_db must be a finite number"),
    ("air set KEPT doppler_hz=5", "doppler_hz belongs to a profile: add fading=NAME"),
    ("air set KEPT fading=none k_db=5", "k_db belongs to a profile: add fading=NAME"),
    ("air set KEPT series=/no/such/file", "/no/such/file: No such file or directory"),
    ("air set KEPT interference=/no/such/file", "/no/such/file: no such recording"),
    ("air set KEPT level_dbm=-50", "level_dbm belongs to a recording: add interference=RECORDING"),
    ("air set KEPT gain_db=-80 --to V1:7", "port 'V1:7': its channel must be 0 to 3"),
    # what is good does not take effect when what comes after it is not
    ("air set KEPT gain_db=-80 noise_dbm_hz=3", "noise density must be at most 0 dBm/Hz"),
    ("air set KEPT fading=epa delay_ns=-1", "delay_ns"),
    ("air set KEPT noise_dbm_hz=-150 clock_ppm=nan", "within 1000 ppm"),
    ("record LAB --device DEVICE --freq 2.4e9 --seconds 0", "0.0 is not in the range x>=0.001"),
    ("record LAB --device DEVICE --freq 2.4e9 --seconds nan", "nan is not a finite number"),
    ("record LAB --device DEVICE", "Missing option '--freq'"),
    ("record LAB --device DEVICE --freq 2.4e9 --device type=nonesuch", "no USRP answers to 'type=nonesuch'"),
    ("replay SHORT --set modulation", "--set modulation: must be KEY=VALUE"),
    ("replay SHORT --set modulation=[", "--set modulation=[: the value is not valid YAML"),
    ("replay SHORT --set colour=red", "PHY ofdm has no option 'colour': choose from rms, network, modulation, fec"),
    ("replay SHORT --set rate_sps=1", "--set rate_sps=1: the recording says its own rate"),
    ("replay SHORT --phy morse", "'morse' is not one of 'ofdm', 'wifi'"),
    ("replay SHORT --trace /no/such/folder/lab.parquet", "/no/such/folder/lab.parquet: "),
    ("replay SHORT --freq 2.4e9", "--freq is for transmitting: add --device"),
    ("replay SHORT --device type=nonesuch --cabled", "no USRP answers to 'type=nonesuch'"),
    ("replay SHORT --device type=nonesuch --freq 2.4e9 --region usa", "must not radiate on 2399."),
    ("replay SHORT --device type=nonesuch", "would radiate on "),
    ("replay SHORT --device DEVICE --json", "--json is for decoding: drop --device"),
    ("replay SHORT --device DEVICE --phy ofdm", "--phy is for decoding: drop --device"),
    ("replay SHORT --device DEVICE --set modulation=qpsk", "--set is for decoding: drop --device"),
    ("replay SHORT --device DEVICE --trace x.parquet", "--trace is for decoding: drop --device"),
]
#: likewise, for those who may make networks
WRONG_AS_ROOT = [
    ("run LOSSY --out OUT --device serial=1", "--device is given 1 times: name ST's radio, then BAS's"),
    (
        "run LOSSY --out OUT --tier usrp --device serial=1 --device serial=1",
        "radio: devices are both 'serial=1': name one by serial",
    ),
    ("run LOSSY --out OUT --tier vusrp --set channel.rate_bps=2e7", "radio: ofdm qpsk at 2.5 Msps carries 2"),
    ("run LOSSY --out OUT --tier vusrp --set radio.fec=turbo", "radio.fec: input should be 'none', 'rep3', "),
    ("run LOSSY --out OUT --tier vusrp --set radio.modulation=am", "radio.modulation: input should be 'bpsk', 'qpsk'"),
    ("run LOSSY --out OUT --tier vusrp --set radio.up_hz=2.411e9", "up_hz and down_hz are closer than rate_sps"),
    ("run LOSSY --out OUT --tier vusrp --set channel.fading=fog", "there is no profile 'fog'"),
    (
        "station --tap flx0 --out AWAY --device type=nonesuch --set radio.cabled=true",
        "station: no USRP answers to 'type=nonesuch'",
    ),
    (
        "station --tap flx0 --out AWAY --device DEVICE --set radio.rate_sps=1e5",
        "station: radio: ofdm qpsk at 0.1 Msps carries",
    ),
    ("station --tap flx0 --out AWAY --device DEVICE --as moon", "'moon' is not one of 'st', 'bas'"),
    ("station --tap flx0 --out AWAY --device DEVICE --scenario /no/such.yaml", "/no/such.yaml: no such scenario"),
    ("station --tap flx0 --out AWAY --device DEVICE --seconds nan", "nan is not a finite number"),
    ("station --tap flx0 --out AWAY", "Missing option '--device'"),
]


@needs_vusrp
@pytest.mark.patient
@pytest.mark.parametrize(
    ("command", "message"), [*WRONG, *(pytest.param(*each, marks=needs_network[1]) for each in WRONG_AS_ROOT)]
)
def test_wrong_input_is_one_line_and_changes_nothing(
    kept: str, short: Path, command: str, message: str, tmp_path: Path, capfd: Capture
) -> None:
    away = tmp_path.with_name(f"{tmp_path.name}-away")
    away.mkdir()
    named = {"LOSSY": LOSSY, "SHORT": short, "LAB": tmp_path / "lab", "OUT": tmp_path / "runs", "AWAY": away}
    device = f"type=vusrp,air={air_name()},serial=V1"
    words = [str(named.get(word, word)).replace("KEPT", kept).replace("DEVICE", device) for word in command.split()]
    with Air.open(kept) as air:

        def state() -> tuple[Any, ...]:
            return air.link("V1:0", "V2:0"), air.noise_dbm_hz("V2:0"), air.clock_offset_ppm("V1")

        before = state()
        assert message.replace("KEPT", kept) in refused(capfd, *words)
        assert state() == before
    ours = [name for name in Air.names() if name.startswith((kept, f"trial-{os.getpid()}"))]
    assert ours == [kept]
    assert {path.stem for path in tmp_path.iterdir()} == {"short"}
