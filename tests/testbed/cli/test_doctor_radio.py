"""`doctor --radio`: each prepared fault is named, with its remedy, and no other."""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from common.sides import Side
from flowgraphs.air import Air
from testbed.cli import app
from testbed.cli.doctor import usrp
from testbed.cli.doctor.look import Check
from testbed.cli.doctor.usrp.case import Answer, Case, Radio
from testbed.cli.doctor.usrp.probe import ask, warnings_in
from testbed.cli.options import DEMO_SCENARIOS
from testbed.scenario.file import load
from tests.harness.radios import air_name, needs_vusrp

# -- faults of the machine, and of radios that nobody here has ------------------------------------------------

TX, RX = ({"carrier_hz": hz, "gain_db": 40.0, "master_clock_hz": 40e6} for hz in (2.46e9, 2.41e9))
USB = Radio(
    "ST",
    "serial=31A1",
    Answer(
        fits=[{"type": "b200", "serial": "31A1", "product": "B210"}],
        settings_fault="",
        name="B210",
        serial="31A1",
        usb_version=3,
        link_octets=500e6,
        ref_locked=True,
        tx=TX,
        rx=RX,
    ),
)
NETWORK = Radio(
    "BAS",
    "addr=192.168.40.2",
    Answer(
        fits=[{"type": "x300", "addr": "192.168.40.2", "serial": "31B2"}],
        settings_fault="",
        name="X310",
        serial="31B2",
        ref_locked=True,
        tx=TX,
        rx=RX,
    ),
)
N210 = replace(NETWORK, answer=replace(NETWORK.answer, fits=[{"type": "usrp2", "serial": "31B2"}]))
GONE = Answer(fault="no USRP answers")
BUSY = Answer(fits=USB.answer.fits, fault="AssertionError: accum_timeout < _timeout")
RULE = 'SUBSYSTEMS=="usb", ATTRS{idVendor}=="2500", ATTRS{idProduct}=="0020", MODE:="0666"\n'
ROUTES = """Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
eth1\t0028A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
"""
RINGS = """Ring parameters for eth1:
Pre-set maximums:
RX:             4096
RX Mini:        n/a
TX:             4096
Current hardware settings:
RX:             {rx}
RX Mini:        n/a
TX:             4096
"""
MANIFEST = 'CONTENTS = """# UHD Image Manifest File\nb2xx_b210_fpga_default  uhd-8c49730  b2xx/b210.zip  dd70\n"""\n'
FILES = {
    "lib/udev/rules.d/60-uhd-host.rules": RULE,
    "usr/bin/uhd_images_downloader": MANIFEST,
    "usr/share/uhd/images/usrp_b200_fw.hex": "",
    "usr/share/uhd/images/usrp_b210_fpga.bin": "",
    "usr/share/uhd/images/inventory.json": '{"b2xx_b210_fpga_default": {"repo_hash": "uhd-8c49730"}}',
    "sys/bus/usb/devices/2-1/idVendor": "2500\n",
    "sys/bus/usb/devices/2-1/idProduct": "0020\n",
    "sys/bus/usb/devices/2-1/serial": "31A1\n",
    "sys/bus/usb/devices/2-1/speed": "5000\n",
    "proc/net/route": ROUTES,
    "sys/class/net/eth1/mtu": "9000\n",
    "sys/class/net/eth1/speed": "10000\n",
    "sys/class/net/eth1/carrier": "1\n",
    "proc/sys/net/core/rmem_max": "50000000\n",
    "proc/sys/net/core/wmem_max": "50000000\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
    "proc/self/status": "CapEff:\t0000000000000000\n",
    "proc/self/limits": "Max realtime priority     99                   99\n",
}


@pytest.fixture
def case(tmp_path: Path) -> Case:
    """A machine without a fault."""
    for name, text in FILES.items():
        write(tmp_path, name, text)
    return Case(
        radios=(USB, NETWORK),
        rate_sps=2.5e6,
        clock_source="external",
        root=tmp_path,
        uid=1000,
        rings=lambda interface: RINGS.format(rx=4096),
    )


def write(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def faults(case: Case) -> list[Check]:
    return [check for check in usrp.checks(case) if not check.ok]


def test_machine_without_fault_passes_every_check(case: Case) -> None:
    found = list(usrp.checks(case))
    assert len({check.name for check in found}) == len(found) > 20
    for check in found:
        assert (check.ok, check.remedy) == (True, ""), check
        assert check.detail, check


#: one file otherwise: its name, its text, the check, what it says, the remedy; required
FILE_FAULTS = [
    ("lib/udev/rules.d/60-uhd-host.rules", "# " + RULE, "udev rules", "none for USB 2500:0020", "uhd-host", True),
    (
        "sys/bus/usb/devices/2-1/idProduct",
        "0022",
        "udev rules",
        "none for USB 2500:0022: only root may open it",
        "udevadm control --reload",
        True,
    ),
    (
        "usr/share/uhd/images/inventory.json",
        '{"b2xx_b210_fpga_default": {"repo_hash": "uhd-1234567"}}',
        "version of UHD's images",
        "b2xx_b210_fpga_default is uhd-1234567, UHD wants uhd-8c49730",
        "uhd_images_downloader",
        True,
    ),
    ("sys/class/net/eth1/mtu", "1500", "BAS's radio: MTU", "1500 on eth1, 9000", "link set eth1 mtu 9000", False),
    ("sys/class/net/eth1/mtu", "1400", "BAS's radio: MTU", "1400 on eth1, 9000", "link set eth1 mtu 9000", True),
    ("sys/class/net/eth1/carrier", "0", "BAS's radio: route", "eth1 leads to 192.168.40.2 but", "eth1 up", True),
    (
        "proc/sys/net/core/rmem_max",
        "212992",
        "receive buffers",
        "rmem_max is 212992, UHD asks for 25000000",
        "sysctl -w net.core.rmem_max=25000000",
        False,
    ),
    ("proc/sys/net/core/wmem_max", "212992", "send buffers", "is 212992", "net.core.wmem_max=25000000", False),
    (
        "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor",
        "powersave",
        "processors' governor",
        "performance, powersave",
        "cpupower frequency-set -g performance",
        False,
    ),
    ("proc/self/limits", "", "real-time rights", "a real-time priority of 0 at most", "rtprio 99", False),
]


@pytest.mark.parametrize(("file", "text", "name", "says", "remedy", "required"), FILE_FAULTS)
def test_fault_of_machine_is_named(
    case: Case, file: str, text: str, name: str, says: str, remedy: str, required: bool
) -> None:
    write(case.root, file, text)
    [check] = faults(case)
    assert (check.name, check.required) == (name, required)
    assert says in check.detail
    assert remedy in check.remedy


Change = Callable[[Case], Case]


def with_answers(usb: Answer | None = None, network: Answer | None = None) -> Change:
    radios = (
        replace(USB, answer=usb or USB.answer),
        replace(NETWORK, answer=network or NETWORK.answer),
    )
    return lambda case: replace(case, radios=radios)


ANSWER_FAULTS: list[tuple[Change, str, str, str]] = [
    (with_answers(usb=BUSY), "ST's radio: answer", "accum_timeout < _timeout", "one program at a time has it"),
    (with_answers(usb=GONE), "ST's radio: answer", "no USRP answers", "uhd_find_devices --args 'serial=31A1'"),
    (with_answers(usb=replace(USB.answer, usb_version=2)), "ST's radio: USB", "USB 2", "5000M"),
    (
        with_answers(network=replace(NETWORK.answer, ref_locked=False)),
        "BAS's radio: reference",
        "not locked to external",
        "feed 10 MHz",
    ),
    (
        with_answers(usb=replace(USB.answer, clock_fault="no gpsdo in it")),
        "ST's radio: reference",
        "no gpsdo in it",
        "leave radio.clock_source out",
    ),
    (
        with_answers(
            usb=replace(USB.answer, settings_fault="USRP 'serial=31A1': has no gain of 99 dB: choose from 0 to 76")
        ),
        "ST's radio: settings",
        "has no gain of 99 dB",
        "choose from 0 to 76",
    ),
    (
        with_answers(usb=replace(USB.answer, scenario_fault="radio: is slow: set channel.rate_bps to 1")),
        "scenario",
        "radio: is slow",
        "set channel.rate_bps to 1",
    ),
    (with_answers(network=replace(NETWORK.answer, serial="31A1")), "two devices", "both are serial 31A1", "--radio"),
    (
        with_answers(usb=replace(USB.answer, fits=[*USB.answer.fits, {"serial": "31A0"}])),
        "two devices",
        "'serial=31A1' fits 31A0, 31A1",
        "serial=31A0",
    ),
    (
        with_answers(usb=replace(USB.answer, said=["[B200] no calibration"])),
        "ST's radio: UHD's warnings",
        "[B200] no calibration",
        "as UHD says",
    ),
    (
        with_answers(usb=replace(USB.answer, link_octets=8e6)),
        "ST's radio: samples",
        "10 of 8 MB/s each way",
        "radio.rate_sps=2000000",
    ),
    (
        lambda case: replace(case, rings=lambda _: RINGS.format(rx=256)),
        "BAS's radio: ring buffers",
        "rx 256 of 4096",
        "ethtool -G eth1 rx 4096",
    ),
]


@pytest.mark.parametrize(("change", "name", "says", "remedy"), ANSWER_FAULTS)
def test_fault_of_radio_is_named(case: Case, change: Change, name: str, says: str, remedy: str) -> None:
    [check] = faults(change(case))
    assert check.name == name
    assert says in check.detail
    assert remedy in check.remedy


def test_usrp_that_is_not_on_usb_is_named(case: Case) -> None:
    write(case.root, "sys/bus/usb/devices/2-1/idVendor", "1d6b")
    found = {check.name: check for check in faults(with_answers(usb=GONE)(case))}
    assert list(found) == ["ST's radio: answer", "ST's radio: USB"]
    assert found["ST's radio: USB"].detail == "no USRP on USB"


@pytest.mark.parametrize(("mbps", "ok"), [("480", False), ("5000", True), ("10000", True)])
def test_speed_of_usb_is_read_from_kernel_where_uhd_does_not_tell(case: Case, mbps: str, ok: bool) -> None:
    write(case.root, "sys/bus/usb/devices/2-1/speed", mbps)
    found = {check.name: check for check in usrp.checks(with_answers(usb=BUSY)(case))}
    assert found["ST's radio: USB"].ok is ok


@pytest.mark.parametrize(
    ("folder", "lacks"),
    [
        ({}, "no usrp_b200_fw.hex and no usrp_b210_fpga.bin in "),
        ({"usrp_b200_fw.hex": "", "usrp_b200_fpga.bin": ""}, "no usrp_b210_fpga.bin in "),
        ({"usrp_b210_fpga.bin": ""}, "no usrp_b200_fw.hex in "),
    ],
)
def test_images_that_are_missing_are_named(case: Case, tmp_path: Path, folder: dict[str, str], lacks: str) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    for name, text in folder.items():
        write(mine, name, text)
    [check] = faults(replace(case, images=f"/nonesuch:{mine}"))
    assert (check.name, check.required) == ("UHD's images", True)
    assert check.detail == f"{lacks}{mine}"
    assert "uhd_images_downloader --types b2xx" in check.remedy


def test_image_of_any_board_is_needed_where_no_board_answers(case: Case) -> None:
    images = case.root / "usr/share/uhd/images"
    assert [check.name for check in faults(with_answers(usb=GONE)(case))] == ["ST's radio: answer"]
    (images / "usrp_b210_fpga.bin").unlink()
    found = {check.name: check.detail for check in faults(with_answers(usb=GONE)(case))}
    assert found["UHD's images"] == f"no usrp_b2*_fpga.bin in {images}"


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("192.168.10.2", "only by the router at 10.0.0.1 to 192.168.10.2"),
        ("10.0.0.9", "eth0 leads to 10.0.0.9 but has no carrier"),
    ],
)
def test_device_in_no_subnet_of_this_machine_is_named(case: Case, address: str, says: str) -> None:
    far = replace(NETWORK, args=f"addr={address}")
    found = {check.name: check for check in faults(replace(case, radios=(far,)))}
    assert found["BAS's radio: route"].detail == says


def test_device_without_any_route_is_named(case: Case) -> None:
    write(case.root, "proc/net/route", ROUTES.splitlines()[0])
    [check] = faults(case)
    assert check.detail == "no route to 192.168.40.2"
    assert "192.168.40.1/24" in check.remedy


def test_n210_asks_for_half_a_second_of_receive_buffer(case: Case) -> None:
    write(case.root, "proc/sys/net/core/rmem_max", "25000000")
    write(case.root, "proc/sys/net/core/wmem_max", "1048576")
    n210 = replace(case, radios=(N210,))
    assert [(check.name, check.remedy) for check in faults(n210)] == [
        ("receive buffers", "sysctl -w net.core.rmem_max=50000000")
    ]
    own = replace(N210, args=f"{N210.args},recv_buff_size=25e6")
    assert not faults(replace(n210, radios=(own,)))


def test_gigabit_needs_short_packets_only(case: Case) -> None:
    write(case.root, "sys/class/net/eth1/speed", "-1")
    write(case.root, "sys/class/net/eth1/mtu", "1500")
    write(case.root, "proc/sys/net/core/rmem_max", "2500000")
    write(case.root, "proc/sys/net/core/wmem_max", "2500000")
    assert not faults(case)
    assert [check.detail for check in faults(replace(case, rate_sps=40e6))] == ["160 of 125 MB/s each way"]


def test_ring_buffers_cannot_be_told_without_ethtool(case: Case) -> None:
    def missing(interface: str) -> str:
        raise FileNotFoundError

    [check] = faults(replace(case, rings=missing))
    assert check.remedy == "apt-get install ethtool"


def test_udev_rules_are_optional_for_root(case: Case) -> None:
    write(case.root, "lib/udev/rules.d/60-uhd-host.rules", "")
    [check] = faults(replace(case, uid=0))
    assert not check.required


def test_capability_gives_real_time_rights(case: Case) -> None:
    write(case.root, "proc/self/limits", "")
    write(case.root, "proc/self/status", f"CapEff:\t{1 << 23:016x}\n")
    assert not faults(case)


def test_virtual_radios_have_no_cables(case: Case) -> None:
    virtual = replace(USB, args="type=vusrp,serial=V1")
    names = {check.name for check in usrp.checks(replace(case, radios=(virtual,)))}
    assert not names & {"udev rules", "UHD's images", "receive buffers", "ST's radio: route"}


def test_warnings_of_uhd_are_a_line_each() -> None:
    log = "linux\n[INFO] [UHD] 4.3\n[WARNING] [UDP] too small.\nTarget 5.\n[ERROR] [B200] bad\n[INFO] [B200] fine\n"
    assert warnings_in(log) == ["[UDP] too small. Target 5.", "[B200] bad"]


# -- faults of virtual radios that behave like real ones -----------------------------------------------------


@pytest.fixture
def air() -> Iterator[str]:
    with Air.create(air_name()) as air:
        yield air.name


def asked(air: str, args: str, *settings: str, side: Side = "up", clock_source: str | None = None) -> dict[str, Check]:
    """The checks of one virtual radio, asked in earnest."""
    scenario = load(DEMO_SCENARIOS["usrp"], settings, tier="usrp")
    args = f"type=vusrp,air={air},{args}"
    answer = ask(args, clock_source, scenario.plain(), side)
    case = Case((Radio("ST", args, answer),), scenario.radio.rate_sps, clock_source)
    return {check.name.removeprefix("ST's radio: "): check for check in usrp.checks(case)}


@needs_vusrp
@pytest.mark.slow
@pytest.mark.patient
@pytest.mark.parametrize(
    ("args", "settings", "faults"),
    [
        ("serial=V 1", (), {"answer": ("'V 1' cannot be a serial number", "uhd_find_devices")}),
        (
            "serial=V1,profile=n210-sbx",
            ("radio.rate_sps=3e6",),
            {"settings": ("has no sample rate of 3000000, the nearest is 3030303", "set the rate to that")},
        ),
        (
            "serial=V1,profile=n210-sbx",
            ("radio.up_hz=5.8e9",),
            {"settings": ("cannot be tuned to 5800 MHz", "choose from ")},
        ),
        (
            "serial=V1,profile=x310-ubx",
            ("radio.master_clock_hz=100e6",),
            {"settings": ("must be one of 184.32e6, 200e6", "change the scenario's radio")},
        ),
        (
            "serial=V1,profile=b210,link=usb2",
            ("radio.rate_sps=20e6", "channel.rate_bps=500e6", "radio.tx_gain_db=95"),
            {
                "samples": ("80 of 53.25 MB/s", "rate_sps=13312000"),
                "USB": ("USB 2", "USB 3"),
                "scenario": ("at 20 Msps carries", "channel.rate_bps"),
                "settings": ("has no gain of 95 dB", "choose from 0 to 89"),
            },
        ),
    ],
)
def test_faults_of_family_are_named(
    air: str, args: str, settings: tuple[str, ...], faults: dict[str, tuple[str, str]]
) -> None:
    found = {name: check for name, check in asked(air, args, *settings).items() if not check.ok}
    # a machine may have faults of its own, and UHD may warn; neither is required
    assert {name for name, check in found.items() if check.required} == faults.keys() - {"USB"}
    for name, (says, remedy) in faults.items():
        assert says in found[name].detail
        assert remedy in found[name].remedy


@needs_vusrp
@pytest.mark.slow
@pytest.mark.patient
def test_reference_that_a_family_has_not_got_is_named(air: str) -> None:
    args = "serial=V1,profile=b210"
    assert not asked(air, args, "radio.clock_source=gpsdo", clock_source="gpsdo")["reference"].ok
    locked = asked(air, args, "radio.clock_source=external", clock_source="external")["reference"]
    assert (locked.ok, locked.detail) == (True, "locked to external")


@needs_vusrp
@pytest.mark.slow
@pytest.mark.patient
def test_command_asks_both_radios(air: str, capsys: pytest.CaptureFixture[str]) -> None:
    one = f"type=vusrp,air={air},serial=V1,profile=b210"
    assert app.main(["doctor", "--json", "--radio", one, "--radio", one]) == 2
    report = json.loads(capsys.readouterr().out)
    required = {check["name"]: check for check in report["checks"] if check["required"] and not check["ok"]}
    assert list(required) == ["two devices"]
    assert required["two devices"]["detail"] == "both are serial V1"
    assert report["ready"] is False
    other = one.replace("V1", "V2")
    assert app.main(["doctor", "--radio", one, "--radio", other, os.fspath(DEMO_SCENARIOS["usrp"])]) == 0
    assert "a run on these radios has everything it needs" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["scenario.yaml"], "SCENARIO and --set are for the radios"),
        (["--radio", "a=1", "--radio", "a=2", "--radio", "a=3"], "--radio is given 3 times"),
    ],
)
def test_wrong_use_is_one_line(args: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["doctor", *args]) == 2
    assert says in capsys.readouterr().err
