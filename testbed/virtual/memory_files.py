"""The files of a machine in QEMU: an archive that its kernel unpacks into memory before the first process (initramfs).

Read first: docs/virtual-time.md; the kernel's Documentation/driver-api/early-userspace/buffer-format.rst (cpio).

QEMU answers a request for a file of the host at a time of its own, so the machine has all files from the start: the
interpreter, the packages of a run, the programs that a run starts, modules of the kernel, and this checkout, at
`PLACE`, wherever it is on the host. Python's caches are made here for every source: a run's times depend neither on
those of the host nor on the time at which a source was changed.

Rules kept: what changes seldom is kept in one file, whole, named by the sizes and times of all that is in it.
"""

import importlib.util
import marshal
import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import BinaryIO

from common import compiled
from hosts.kernel.bpf.build import build
from hosts.kernel.profiles import ELN_CONTROL
from testbed.errors import FadelabError
from testbed.paths import bpf_objects, root
from testbed.virtual import stock_kernel

#: the checkout within the machine
PLACE = Path("/fadelab")
#: the interpreter of `PLACE`
PYTHON = PLACE / ".venv" / "bin" / "python"

#: what a run starts, and what the kernel does
_PROGRAMS = ("python3", "kmod", "modprobe", "ip", "nft", "sh")
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_LIBRARIES = ("libbpf.so.1",)
_LIBRARY_FOLDER = Path("/usr/lib/x86_64-linux-gnu")
#: links to folders of the same name in /usr
_MERGED = ("bin", "lib", "lib64", "sbin")
_STANDARD = Path(sysconfig.get_path("stdlib"))
_SITE = PLACE / ".venv" / "lib" / _STANDARD.name / "site-packages"
#: packages of the base group that draw, and so are not for the part of a run within a machine
_NOT_IN_RUNS = ("contourpy", "fonttools", "kiwisolver", "matplotlib", "pillow")
#: folders of packages and of the standard library that no run imports
_UNUSED_FOLDERS = {
    *("__pycache__", "dist-packages", "ensurepip", "idlelib", "include", "lib2to3", "test", "tests", "tkinter"),
    Path(sysconfig.get_config_var("LIBPL")).name,
}
_UNUSED_ENDINGS = (".a", ".c", ".cpp", ".h", ".md", ".pxd", ".pxi", ".pyi", ".pyx")
#: libraries of pyarrow for servers that no run asks
_UNUSED_LIBRARIES = re.compile(r"flight|_encryption")
#: rooms of the checkout that no run imports
_NOT_ROOMS = {"benchmarks", "experiments", "hil_tests", "tests"}
_EMPTY_FOLDERS = ("dev", "mnt", "proc", "root", "run/machine", "sys", "tmp")
#: octal: the kind of a file and its rights, as in `st_mode`
_FOLDER, _FILE, _PROGRAM, _LINK, _DEVICE = 0o40755, 0o100644, 0o100755, 0o120777, 0o020666
#: devices that the first process needs before it has mounted /dev: major and minor number
_DEVICES = {"dev/console": (5, 1), "dev/null": (1, 3), "dev/urandom": (1, 9)}
#: importlib: a cache that is not compared with its source
_UNCHECKED = (1).to_bytes(4, "little")


class Archive:
    """A cpio archive, written in order; each file is written once, with the folders above it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._names: set[str] = set()

    def folder(self, place: str | Path) -> None:
        """Write a folder."""
        self._write(place, _FOLDER)

    def file(self, place: str | Path, octets: bytes, *, program: bool = False) -> None:
        """Write a file."""
        self._write(place, _PROGRAM if program else _FILE, octets)

    def link(self, place: str | Path, target: str | Path) -> None:
        """Write a symbolic link."""
        self._write(place, _LINK, os.fsencode(target))

    def device(self, place: str, major: int, minor: int) -> None:
        """Write a character device."""
        self._write(place, _DEVICE, major=major, minor=minor)

    def end(self) -> None:
        """Write the end; another archive may follow it."""
        self._entry("TRAILER!!!", 0, b"", 0, 0)

    def _write(self, place: str | Path, mode: int, octets: bytes = b"", major: int = 0, minor: int = 0) -> None:
        name = str(place).strip("/")
        if name in self._names:
            return
        above = name.rpartition("/")[0]
        if above:
            self._write(above, _FOLDER)
        self._names.add(name)
        self._entry(name, mode, octets, major, minor)

    def _entry(self, name: str, mode: int, octets: bytes, major: int, minor: int) -> None:
        path = os.fsencode(name) + b"\0"
        words = (len(self._names), mode, 0, 0, 1, 0, len(octets), 0, 0, major, minor, len(path), 0)
        head = b"070701" + b"".join(b"%08X" % word for word in words) + path
        for part in (head, octets):
            self._file.write(part + bytes(-len(part) % 4))


def archive() -> BinaryIO:
    """Open the archive of all that a machine has but its order; makes it when a file of it has changed.

    Raises FadelabError or HostError.
    """
    packages = list(_packages())
    system = _system(_programs(), [source for source, _ in packages])
    sources = [*system, *packages, *_checkout()]
    place = stock_kernel.folder() / f"files-{_digest(sources)}.cpio"
    with suppress(FileNotFoundError):
        return place.open("rb")
    draft = place.with_name(f"{place.name}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            _write(Archive(file), sources)
        for old in set(place.parent.glob("files-*.cpio")) - {place}:
            old.unlink(missing_ok=True)
        # another process may have made the same
        draft.replace(place)
        return place.open("rb")
    except OSError as error:
        raise FadelabError(
            f"the files of QEMU's machine cannot be written in {place.parent}: {error.strerror}"
        ) from None
    finally:
        draft.unlink(missing_ok=True)


#: a file of the host, and its place in the machine
_Source = tuple[Path, Path]


def _programs() -> list[Path]:
    found = []
    for name in _PROGRAMS:
        path = shutil.which(name, path=_PATH)
        if path is None:
            raise FadelabError(f"the machine in virtual time needs {name}, which is missing")
        found.append(Path(path))
    return found


def _system(programs: Iterable[Path], packages: Iterable[Path]) -> Iterator[_Source]:
    """What Debian's packages have: programs, the standard library, libraries of all of these and of Python's packages,
    and the kernel's modules."""
    standard = [path for path in _files(_STANDARD) if not path.name.endswith(_UNUSED_ENDINGS)]
    roots = [*programs, *(_LIBRARY_FOLDER / name for name in _LIBRARIES)]
    linked = [*roots, *(path for path in (*standard, *packages) if ".so" in path.name)]
    for path in [*roots, *_libraries(linked), *standard]:
        yield path, path
    yield Path("/etc/ld.so.cache"), Path("/etc/ld.so.cache")
    modules = stock_kernel.modules()
    for source in _files(modules / "lib"):
        yield source, "/usr" / source.relative_to(modules)


def _packages() -> Iterator[_Source]:
    """The Python packages of the base group."""
    for line in (root() / "requirements.lock").read_text().splitlines():
        name, pinned, _ = line.partition("==")
        if not pinned or name in _NOT_IN_RUNS:
            continue
        for file in sorted(metadata.distribution(name).files or ()):
            if ".." in file.parts or not _used(Path(file)) or file.name.endswith(_UNUSED_ENDINGS):
                continue
            if _UNUSED_LIBRARIES.search(file.name):
                continue
            source = Path(str(file.locate()))
            if source.is_file():
                yield source, _SITE / file


def _checkout() -> Iterator[_Source]:
    """This program, and the BPF objects for the machine's kernel."""
    here = root()
    for room in sorted(path.parent for path in here.glob("*/__init__.py")):
        if room.name not in _NOT_ROOMS:
            for source in _files(room):
                yield source, PLACE / source.relative_to(here)
    if compiled.state() == "compiled":
        for source in _files(compiled.BUILD):
            yield source, PLACE / source.relative_to(here)
    for name, macros in (("options", {}), ("control", {"CONTROL_NAME": ELN_CONTROL})):
        source = build(name, bpf_objects(), btf=stock_kernel.types(), **macros)
        yield source, PLACE / source.relative_to(here)


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and _used(path.relative_to(folder)):
            yield path


def _used(path: Path) -> bool:
    return not _UNUSED_FOLDERS & set(path.parts[:-1])


def _libraries(programs: Iterable[Path]) -> list[Path]:
    """What the loader loads for these programs and libraries, those of Python's packages left out."""
    done = subprocess.run(
        ["ldd", *map(str, programs)], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    found = set(re.findall(r"(/\S+) \(0x", done.stdout))
    return [Path(path) for path in sorted(found) if "site-packages" not in path]


def _digest(sources: Iterable[_Source]) -> str:
    hashed = sha256(Path(__file__).read_bytes())
    for source, place in sources:
        status = source.stat()
        hashed.update(f"{source} {place} {status.st_size} {status.st_mtime_ns}\n".encode())
    return hashed.hexdigest()[:16]


def _write(archive: Archive, sources: Iterable[_Source]) -> None:
    for name in _EMPTY_FOLDERS:
        archive.folder(name)
    for name in _MERGED:
        archive.link(name, Path("usr") / name)
    archive.link("var/run", "/run")
    for name, numbers in _DEVICES.items():
        archive.device(name, *numbers)
    archive.link(PYTHON, "/usr/bin/python3")
    archive.file(PYTHON.parents[1] / "pyvenv.cfg", b"home = /usr/bin\ninclude-system-site-packages = false\n")
    for source, place in sources:
        _copy(archive, source, place)
    archive.end()


def _copy(archive: Archive, source: Path, place: Path) -> None:
    if len(place.parts) > 1 and place.parts[1] in _MERGED:
        place = Path("/usr", *place.parts[1:])
    if source.is_symlink():
        target = source.readlink()
        archive.link(place, target)
        _copy(archive, source.parent / target, Path(os.path.normpath(place.parent / target)))
        return
    octets = source.read_bytes()
    archive.file(place, octets, program=os.access(source, os.X_OK))
    if place.suffix == ".py":
        try:
            code = compile(octets, place, "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            # examples of errors, and templates
            return
        cache = importlib.util.MAGIC_NUMBER + _UNCHECKED + importlib.util.source_hash(octets) + marshal.dumps(code)
        archive.file(importlib.util.cache_from_source(str(place)), cache)
