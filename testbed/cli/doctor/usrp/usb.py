"""USB devices (B200, B210, B200mini, B205mini): the right to open them, their images, their speed.

Read first: UHD's `host/utils/uhd-usrp.rules`, `paths.cpp` (get_images_dir), `b200_iface.hpp` (names of images),
`b200_impl.cpp` (usb_version), and `uhd_images_downloader`.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from testbed.cli.doctor.look import RADIO_JOB, Check
from testbed.cli.doctor.usrp.case import ON_TIME, Case, Radio, made

_RULES = ("/etc", "/run", "/usr/local/lib", "/lib", "/usr/lib")
#: of Ettus Research and of National Instruments (`b200_iface.hpp`)
_VENDORS = ("2500", "3923")
#: of a B200 or B210 that has no other
_B200 = ("2500", "0020")
_FIRMWARE = "usrp_b200_fw.hex"
_FPGAS = {name: f"usrp_{name.lower()}_fpga.bin" for name in ("B200", "B210", "B200mini", "B205mini")}
_DOWNLOAD = "uhd_images_downloader --types b2xx"
_DOWNLOADER = "/usr/bin/uhd_images_downloader"
_IMAGES = ("/usr/share/uhd/images", "/usr/local/share/uhd/images")


class _OnUsb(NamedTuple):
    """A USRP on USB."""

    vendor: str
    product: str
    serial: str
    mbps: int


def udev_rules(case: Case) -> Check | None:
    """Whether udev lets users open the USRPs on USB."""
    if not any(radio.usb for radio in case.radios):
        return None
    files = [rules for folder in _RULES for rules in sorted(case.path(f"{folder}/udev/rules.d").glob("*.rules"))]
    texts = [file.read_text(errors="replace") for file in files]
    lacking = [
        f"{vendor}:{product}"
        for vendor, product in sorted({(one.vendor, one.product) for one in _on_usb(case)} or {_B200})
        if not any(_has_rule(text, vendor, product) for text in texts)
    ]
    return made(
        "udev rules",
        bool(lacking),
        f"none for USB {', '.join(lacking)}: only root may open it" if lacking else "for all USRPs here",
        f"apt-get install uhd-host (or copy UHD's uhd-usrp.rules to {_RULES[0]}/udev/rules.d), then "
        "`udevadm control --reload && udevadm trigger`",
        (RADIO_JOB,) if case.uid else ("use without root",),
    )


def images(case: Case) -> Check | None:
    """Whether the firmware and the FPGA image are there, which UHD loads at every start."""
    radios = [radio for radio in case.radios if radio.usb]
    if not radios:
        return None
    folder = _images_folder(case)
    have = set() if folder is None else {path.name for path in folder.iterdir()}
    boards = {fpga for radio in radios if (fpga := _FPGAS.get(_product(radio)))}
    lacking = sorted(({_FIRMWARE} | boards) - have)
    if not boards and not have.intersection(_FPGAS.values()):
        lacking.append("usrp_b2*_fpga.bin")
    seen = f"no {' and no '.join(lacking)} in {folder or _IMAGES[0]}" if lacking else f"in {folder}"
    kept = f"unset UHD_IMAGES_DIR, or UHD_IMAGES_DIR={folder} {_DOWNLOAD}" if case.images else _DOWNLOAD
    return made("UHD's images", bool(lacking), seen, kept)


def images_version(case: Case) -> Check | None:
    """Whether the images are those of this UHD: its downloader lists them, and keeps an inventory."""
    folder = _images_folder(case)
    manifest = dict(re.findall(r"^(b2xx_\S+_default)\s+(\S+)", case.read(_DOWNLOADER), re.MULTILINE))
    if folder is None or not manifest or not any(radio.usb for radio in case.radios):
        return None
    try:
        inventory = json.loads((folder / "inventory.json").read_text())
    except (OSError, ValueError):
        return None
    old = sorted(name for name, version in manifest.items() if name in inventory and _hash(inventory, name) != version)
    seen = f"{old[0]} is {_hash(inventory, old[0])}, UHD wants {manifest[old[0]]}" if old else "those of this UHD"
    return made("version of UHD's images", bool(old), seen, _DOWNLOAD)


def speed(case: Case, radio: Radio) -> Check | None:
    """Whether the device is on USB 3."""
    version = radio.answer.usb_version
    if version is None:
        if not radio.usb:
            return None
        serial, on_bus = radio.argument("serial"), list(_on_usb(case))
        # a serial number is known once the firmware is loaded
        speeds = [one.mbps for one in on_bus if one.serial == serial] or [one.mbps for one in on_bus]
        if not speeds:
            return radio.check("USB", True, "no USRP on USB", "check cable and power; `lsusb -d 2500:` must list it")
        version = 3 if max(speeds) >= 5000 else 2
    return radio.check(
        "USB",
        version < 3,
        f"USB {version}",
        "take a cable and a port of USB 3, without a hub: `lsusb -t` must show 5000M",
        (ON_TIME,),
    )


def _has_rule(text: str, vendor: str, product: str) -> bool:
    return any(
        f'"{vendor}"' in line and (f'"{product}"' in line or "idProduct" not in line)
        for line in text.splitlines()
        if not line.lstrip().startswith("#")
    )


def _on_usb(case: Case) -> Iterator[_OnUsb]:
    for folder in sorted(case.path("/sys/bus/usb/devices").glob("*")):
        vendor, product, serial, mbps = (
            case.read(f"/sys/bus/usb/devices/{folder.name}/{name}")
            for name in ("idVendor", "idProduct", "serial", "speed")
        )
        if vendor in _VENDORS:
            yield _OnUsb(vendor, product, serial, int(mbps) if mbps.isdigit() else 0)


def _product(radio: Radio) -> str:
    told = [fit.get("product", "") for fit in radio.answer.fits]
    return radio.argument("product") or next(filter(None, told), radio.answer.name)


def _images_folder(case: Case) -> Path | None:
    folders = [*(Path(name) for name in case.images.split(":") if name), *(case.path(name) for name in _IMAGES)]
    return next((folder for folder in folders if folder.is_dir()), None)


def _hash(inventory: dict[str, dict[str, str]], name: str) -> str:
    return str(inventory[name].get("repo_hash", "unknown"))
