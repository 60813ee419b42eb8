"""Debian's own kernel, for machines in virtual time whose kernel needs a compiler for BPF: taken from its package.

Read first: docs/virtual-time.md; the kernel's Documentation/arch/x86/boot.rst.

`python -m testbed.virtual.stock_kernel` fetches it, as the first run that needs it does.

Rules kept: the package is not installed, since that would be one more kernel for the host to boot. A fetched kernel is
whole (`whole_folder.py`), with its stamp last.
"""

import json
import lzma
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from testbed.errors import FadelabError
from testbed.paths import root
from testbed.virtual import whole_folder

#: depends on the package of the newest version
PACKAGE = "linux-image-6.12-cloud-amd64"
#: called with the number of modules unpacked so far, and of all
Told = Callable[[int, int], None]

#: those that a run may load, below `kernel/` of all modules
_MODULES = (
    *("crypto", "lib", "net/8021q", "net/bridge", "net/core", "net/ipv4", "net/ipv6", "net/llc", "net/mptcp"),
    *("net/netfilter", "net/packet", "net/sched", "net/sctp", "net/unix"),
    *("drivers/net/tun.ko.xz", "drivers/net/veth.ko.xz", "drivers/net/dummy.ko.xz", "drivers/net/ifb.ko.xz"),
)
#: offsets in a bzImage
_SETUP_SECTORS, _PAYLOAD = 0x1F1, 0x248
_SECTOR_BYTES = 512


@dataclass(frozen=True, slots=True)
class Kernel:
    """A fetched kernel."""

    #: of the Debian package
    version: str
    #: as `uname -r` has it
    release: str


def program() -> Path:
    """Return the place of the kernel."""
    return folder() / "vmlinuz"


def types() -> Path:
    """Return the place of the kernel's types (BTF)."""
    return folder() / "btf"


def modules() -> Path:
    """Return the folder that has `lib/modules`."""
    return folder()


def folder() -> Path:
    """Return where the kernel is."""
    return root() / ".build" / "qemu"


def fetched() -> Kernel | None:
    """Return the kernel that is there, None without one."""
    try:
        return Kernel(**json.loads((folder() / "stamp.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None


def fetch(told: Told = lambda done, of: None) -> Kernel:
    """Get the kernel from Debian's archive, unless it is there. Raises FadelabError."""
    return whole_folder.once(
        folder(), "the kernel of QEMU's machine", fetched, lambda made, scratch: _fetch(told, made, scratch)
    )


def _fetch(told: Told, made: Path, scratch: Path) -> Kernel:
    name = _package()
    _run(["apt-get", "download", "-q", name], cwd=scratch)
    (package,) = scratch.glob("*.deb")
    _run(["dpkg-deb", "-x", str(package), str(scratch)])
    (image,) = scratch.glob("boot/vmlinuz-*")
    release = image.name.removeprefix("vmlinuz-")
    source, target = (place / "lib" / "modules" / release for place in (scratch, made))
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("kernel"))
    places = [source / "kernel" / name for name in _MODULES]
    found = sorted(path for place in places for path in (place.rglob("*.xz") if place.is_dir() else (place,)))
    for number, path in enumerate(found):
        told(number, len(found))
        place = target / path.relative_to(source).with_suffix("")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(lzma.decompress(path.read_bytes()))
    told(len(found), len(found))
    _run(["/usr/sbin/depmod", "-b", str(made), release])
    _write_types(image, scratch / "vmlinux", made / types().name)
    shutil.copy(image, made / program().name)
    kernel = Kernel(version=package.name.split("_")[1], release=release)
    (made / "stamp.json").write_text(json.dumps(asdict(kernel), indent=1) + "\n")
    return kernel


def _package() -> str:
    said = _run(["apt-cache", "depends", "--important", PACKAGE])
    names = [line.split(": ")[1] for line in said.splitlines() if line.startswith("  Depends: ")]
    if not names:
        raise FadelabError(f"the kernel of QEMU's machine was not fetched: no package {PACKAGE}: apt-get update")
    return names[0]


def _write_types(image: Path, unpacked: Path, place: Path) -> None:
    """Write the types of a compressed kernel: its section `.BTF`."""
    import pyarrow as pa

    octets = image.read_bytes()
    offset, length = struct.unpack_from("<II", octets, _PAYLOAD)
    begin = (octets[_SETUP_SECTORS] + 1) * _SECTOR_BYTES + offset
    # behind the payload stands its unpacked size, in four octets
    payload = pa.BufferReader(octets[begin : begin + length - 4])
    try:
        unpacked.write_bytes(pa.CompressedInputStream(payload, "zstd").read())
    except OSError:
        raise FadelabError(f"the kernel of QEMU's machine was not fetched: {image.name} is not zstd") from None
    _run(["objcopy", "-O", "binary", "--only-section=.BTF", str(unpacked), str(place)])


def _run(command: Sequence[str], cwd: Path | None = None) -> str:
    """Run a program of Debian's and return its output."""
    log = whole_folder.log_of(folder())
    with log.open("ab") as output:
        try:
            done = subprocess.run(
                command,
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=output,
                env={**os.environ, "LC_ALL": "C"},
                text=True,
                check=False,
            )
        except FileNotFoundError:
            raise FadelabError(f"the kernel of QEMU's machine was not fetched: {command[0]} is missing") from None
        output.write(done.stdout.encode())
    if done.returncode:
        raise FadelabError(f"the kernel of QEMU's machine was not fetched: {command[0]} failed; {log} says why")
    return done.stdout


if __name__ == "__main__":
    try:
        fetch()
    except FadelabError as fault:
        print(f"fadelab: {fault}", file=sys.stderr)
        sys.exit(2)
