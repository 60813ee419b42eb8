"""The kernel of machines in virtual time: built from Debian's sources at first use.

Read first: docs/virtual-time.md; `kernel.config`, the options beside `make allnoconfig`.

Rules kept: a build is whole (`whole_folder.py`), with its stamp last. Its sources are Debian's as they are, but for the
lines of `_REPLACED`. Nothing of the sources stays.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path

from testbed.errors import FadelabError
from testbed.paths import root
from testbed.virtual import whole_folder

PACKAGE = "linux-source-6.12"
#: the packages that the build needs beside those of every start, for messages
NEEDED = f"{PACKAGE} flex bison bc"
#: of folders of machines and builds, before the process that they belong to
PREFIX = "fadelab-virtual-"
#: bytes that sources and objects take while they are there
BUILD_BYTES = 700_000_000
#: called with the number of files compiled so far, and of all
Told = Callable[[int, int], None]

_ARCHIVE = Path(f"/usr/src/{PACKAGE}.tar.xz")
_FRAGMENT = Path(__file__).with_name("kernel.config")
#: What is replaced: file, text, and what stands there instead. The first two ask the host for entropy. By the third
#: every system call that failed took 1 us. A file that is not there, or is no terminal, takes none now: a run's times
#: depended on the folders that its interpreters look through, and on which of Python's caches are there. By the fourth
#: processes got back 2,696 bytes of their floating-point state. A host takes all or nothing, and one with AMX has more
#: (11,008; no machine booted). The rest stays zero: no process has tile data, since the kernel in user mode passes on
#: no request for it, and a tile configuration, which needs none, is lost.
_REPLACED = (
    ("arch/um/include/asm/archrandom.h", "ret = os_getrandom(v, max_longs * sizeof(*v), 0);", "ret = 0;"),
    (
        "arch/um/kernel/um_arch.c",
        "if (os_getrandom(rng_seed, sizeof(rng_seed), 0) == sizeof(rng_seed))",
        "if (0)",
    ),
    (
        "arch/um/kernel/skas/syscall.c",
        "um_udelay(1);",
        "if (ret != -ENOENT && ret != -ENOTTY)\n\t\t\t\tum_udelay(1);",
    ),
    (
        "arch/x86/um/os-Linux/registers.c",
        "iov.iov_base = fp_regs;\n\t\tiov.iov_len = FP_SIZE * sizeof(unsigned long);\n\t\tif (ptrace(PTRACE_SETREGSET",
        "static unsigned long whole[4096];\n\t\t__builtin_memcpy(whole, fp_regs, FP_SIZE * sizeof(unsigned long));\n"
        "\t\tiov.iov_base = whole;\n\t\tiov.iov_len = sizeof(whole);\n\t\tif (ptrace(PTRACE_SETREGSET",
    ),
)
#: sources of other processors and of devices that no machine of ours has; their Kconfig and Makefile must stay
_UNUSED = (
    *(
        "Documentation/*/*",
        "tools/[a-hj-km-z]*/*",
        "sound/*.[ch]",
        "samples/*.[ch]",
        "arch/[a-tvwyz]*/*.[chS]",
        "arch/*/boot/dts/*",
    ),
    *("drivers/[ad-mo-su-z]*.[chS]", "drivers/n[a-df-z]*.[ch]", "drivers/net/*/*.[ch]"),
    *("drivers/c[a-gi-z]*.[ch]", "drivers/t[a-su-z]*.[ch]"),
)
#: the same binary wherever and whenever it is built by the same compiler
_BUILT_BY = {"KBUILD_BUILD_USER": "fadelab", "KBUILD_BUILD_HOST": "fadelab", "KBUILD_BUILD_TIMESTAMP": "2025-01-01"}
#: lines of make that stand for a compiled file
_COMPILED = re.compile(r"^  (?:CC|AS) ")
#: about so many files are compiled
_FILES = 1000


@dataclass(frozen=True, slots=True)
class Kernel:
    """A built kernel, as manifests name it."""

    #: of the Debian package
    version: str
    #: SHA-256 of its options and of the changes to its sources
    configuration: str


def program() -> Path:
    """Return the place of the built kernel."""
    return _folder() / "linux"


def built() -> Kernel | None:
    """Return the kernel that is built, None without one that is today's."""
    try:
        kernel = Kernel(**json.loads((_folder() / "stamp.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return kernel if kernel.configuration == _configuration() and program().exists() else None


def build(told: Told = lambda done, of: None) -> Kernel:
    """Build the kernel, unless it is there; takes minutes. Raises FadelabError."""
    return whole_folder.once(_folder(), "the kernel of virtual time", built, partial(_build, told))


def _folder() -> Path:
    return root() / ".build" / "virtual"


@cache
def _configuration() -> str:
    changes = "\n".join(text for replaced in _REPLACED for text in replaced).encode()
    return hashlib.sha256(_FRAGMENT.read_bytes() + changes).hexdigest()


def _build(told: Told, made: Path, scratch: Path) -> Kernel:
    with _sources(scratch) as source:
        require(source)
        return _build_from(source, told, made)


@contextmanager
def _sources(scratch: Path) -> Iterator[Path]:
    """Yield a folder for the sources: `scratch`, if the kernel's make takes it, which refuses spaces and colons."""
    if re.search(r"[\s:]", str(scratch)) is None:
        yield scratch
        return
    with tempfile.TemporaryDirectory(prefix=f"{PREFIX}{os.getpid()}-") as elsewhere:
        yield Path(elsewhere)


def _build_from(source: Path, told: Told, made: Path) -> Kernel:
    log = whole_folder.log_of(_folder())
    told(0, _FILES)
    excluded = (f"--exclude={PACKAGE}/{pattern}" for pattern in _UNUSED)
    options = ("--strip-components=1", "--wildcards", "--wildcards-match-slash")
    _run(log, ["tar", "-xJf", _ARCHIVE, "-C", source, *options, *excluded])
    _replace(source)
    make = ("make", "-C", source, "ARCH=um")
    _run(log, [*make, f"KCONFIG_ALLCONFIG={_FRAGMENT}", "allnoconfig"])
    _run(log, [*make, f"-j{len(os.sched_getaffinity(0))}", "vmlinux"], told)
    _run(log, ["strip", "-o", made / "linux", source / "vmlinux"])
    shutil.copy(source / ".config", made / "config")
    kernel = Kernel(version=_version(), configuration=_configuration())
    (made / "stamp.json").write_text(json.dumps(asdict(kernel), indent=1) + "\n")
    return kernel


def _replace(source: Path) -> None:
    for name, before, after in _REPLACED:
        text = (source / name).read_text()
        if text.count(before) != 1:
            raise FadelabError(
                f"the kernel of virtual time cannot be built: {name} of {PACKAGE} is not the one we know"
            )
        (source / name).write_text(text.replace(before, after))


def require(place: Path | None = None) -> None:
    """Raise FadelabError where packages are missing, or the room for a build in `place`, by default the checkout."""
    place = root() if place is None else place
    missing = [name for name in ("make", "gcc", "flex", "bison", "bc", "xz") if shutil.which(name) is None]
    if missing or not _ARCHIVE.exists():
        raise FadelabError(f"the kernel of virtual time cannot be built: apt-get install {NEEDED} gcc make xz-utils")
    free = shutil.disk_usage(place).free
    if free < BUILD_BYTES:
        raise FadelabError(
            f"the kernel of virtual time needs {BUILD_BYTES / 1e6:.0f} MB for its build, and {free / 1e6:.0f} are free:"
            f" make room on the file system of {place}"
        )


def _version() -> str:
    command = ["dpkg-query", "-W", "-f", "${Version}", PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else "unknown"


def _run(log: Path, command: Sequence[str | Path], told: Told | None = None) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "ARCH", "CFLAGS")}
    with (
        log.open("ab") as output,
        subprocess.Popen(
            list(command),
            env=environment | _BUILT_BY | {"LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=output,
        ) as child,
    ):
        try:
            assert child.stdout is not None
            done = 0
            for line in child.stdout:
                output.write(line)
                if told is not None and _COMPILED.match(line.decode(errors="replace")):
                    done += 1
                    told(done, max(done, _FILES))
        except BaseException:
            child.terminate()
            raise
    if child.returncode:
        raise FadelabError(f"the kernel of virtual time was not built: {command[0]} failed; {log} says why")
