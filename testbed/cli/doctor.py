"""What this machine can do: the work of `./fadelab doctor`.

Rules kept: nothing is changed (the namespace and the TAP made to see whether they can be made live in a child
process and die with it); what can be tried is tried, not guessed from version numbers; a check that fails
says how to get what is missing. Slow looks (other programs, GNU Radio's imports) run side by side.
"""

import ctypes
import fcntl
import json
import os
import platform
import shutil
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hosts import split_routes
from testbed.paths import root

if TYPE_CHECKING:
    from rich.console import Console

#: The job whose needs decide the exit status.
MAIN_JOB = "demo"

PROGRAM_TIMEOUT_S = 15.0
MIN_KERNEL = (5, 10)
MIN_FREE_BYTES = 1 << 30

SYSTEM_PYTHON = "/usr/bin/python3"
CLONE_NEWNET = 0x40000000
CAP_NET_ADMIN = 12  # linux/capability.h
CAP_SYS_ADMIN = 21
TUNSETIFF = 0x400454CA  # linux/if_tun.h
IFF_TAP_NO_PI = 0x0002 | 0x1000

UHD_MODULES = root() / ".build" / "vusrp" / "uhd"

#: qdiscs and the parameters `tc` insists on
QDISCS = {
    "netem": ("delay", "1ms"),
    "tbf": ("rate", "1mbit", "burst", "10kb", "latency", "10ms"),
    "fq": (),
    "fq_codel": (),
}

Report = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at: whether it is there, what was seen, and what to do when it is not."""

    name: str
    ok: bool
    #: what was seen: a version, a measurement, or what is wrong
    detail: str
    #: how to get it; empty when `ok`
    remedy: str
    #: the commands and features that want it
    needed_for: tuple[str, ...]

    @property
    def required(self) -> bool:
        """Whether the main job does not run without it."""
        return MAIN_JOB in self.needed_for


def checks(report: Report | None = None) -> list[Check]:
    """Look at everything, in a few seconds; `report(done, of, name)` is called after each look."""
    # First and alone, because it forks: the looks below run in threads.
    probed = _private_network()
    looks: list[Callable[[], Check | list[Check]]] = [
        _kernel,
        _privileges,
        lambda: _namespace(probed),
        lambda: _tap(probed),
        _congestion_controls,
        _timer,
        _cores,
        _disk,
        lambda: _qdiscs(probed),
        lambda: _tproxy(probed),
        _btf,
        _struct_ops,
        _cgroup2,
        _bpf_tools,
        _gnuradio,
        _uhd,
        _vusrp,
        _liquid,
        _wifi,
        _influxdb,
        _dygraphs,
        _chromium,
        _tshark,
        _iperf3,
    ]
    found: dict[int, list[Check]] = {}
    with ThreadPoolExecutor(max_workers=4) as pool:
        running = {pool.submit(look): index for index, look in enumerate(looks)}
        for done, future in enumerate(as_completed(running), 1):
            result = future.result()
            found[running[future]] = result if isinstance(result, list) else [result]
            if report is not None:
                report(done, len(looks), found[running[future]][0].name)
    return [check for index in sorted(found) for check in found[index]]


def ready(found: Sequence[Check]) -> bool:
    """Whether everything the main job needs is there."""
    return all(check.ok for check in found if check.required)


def as_json(found: Sequence[Check]) -> str:
    """One JSON object: `ready`, and `checks` with the fields of `Check` and `required`."""
    rows = [asdict(check) | {"required": check.required} for check in found]
    return json.dumps({"ready": ready(found), "checks": rows}, indent=2)


def render(found: Sequence[Check], console: "Console | None" = None) -> None:
    """Print a table, what to do about the gaps, and a closing line."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if console is None:
        # Wide where nobody has a window to measure: a wrapped table is no good to grep.
        console = Console() if sys.stdout.isatty() else Console(width=160)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("", "what", "seen", "needed for"):
        table.add_column(column)
    for check in found:
        mark, style = ("ok", "green") if check.ok else ("--", "red" if check.required else "yellow")
        # Text, because what other programs say may hold square brackets.
        table.add_row(Text(mark, style), check.name, Text(check.detail), Text(", ".join(check.needed_for), "dim"))
    console.print(table)
    missing = [check for check in found if not check.ok]
    if missing:
        console.print("\n[bold]To get what is missing:[/bold]")
        for check in sorted(missing, key=lambda check: not check.required):
            note = "" if check.required else " (optional)"
            console.print(Text(f"  {check.name}{note}: {check.remedy}"), soft_wrap=True)
    needs = [check.name for check in missing if check.required]
    verdict = f"is missing {', '.join(needs)}" if needs else "has everything it needs"
    console.print(Text(f"\n{MAIN_JOB} {verdict}", "bold red" if needs else "bold green"), soft_wrap=True)


@contextmanager
def progress() -> Iterator[Report]:
    """A progress line on stderr while looking, when stderr is a terminal."""

    def line(done: int, of: int, name: str) -> None:
        if sys.stderr.isatty():
            print(f"\r\033[K{done}/{of} {name}", end="", file=sys.stderr, flush=True)

    try:
        yield line
    finally:
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)


# --- the kernel and its rights


def _kernel() -> Check:
    release = platform.release()
    numbers = tuple(int(part) for part in release.split("-")[0].split(".")[:2] if part.isdigit())
    ok = platform.system() == "Linux" and numbers >= MIN_KERNEL
    wanted = ".".join(map(str, MIN_KERNEL))
    return _check("Linux kernel", ok, release, f"boot a kernel of {wanted} or later", "demo", "run", "test")


def _privileges() -> Check:
    status = _read("/proc/self/status")
    effective = next((int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff")), 0)
    wanted = {"CAP_NET_ADMIN": CAP_NET_ADMIN, "CAP_SYS_ADMIN": CAP_SYS_ADMIN}
    lacking = [name for name, bit in wanted.items() if not effective >> bit & 1]
    return _check(
        "privileges",
        not lacking,
        f"without {', '.join(lacking)}" if lacking else ", ".join(wanted),
        "start with sudo; in a container, as root with --cap-add NET_ADMIN --cap-add SYS_ADMIN",
        "demo",
        "run",
        "test",
    )


def _private_network() -> dict[str, str]:
    """Try out, in a child with its own network, what the kernel lets us do.

    Returns thing -> what went wrong, empty for nothing; what was not tried is absent.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        # Whatever happens, this process must not return into the program it is a copy of.
        try:
            os.close(reader)
            result = _try_in_private_network()
            os.write(writer, json.dumps(result).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        answer = stream.read()
    os.waitpid(child, 0)
    try:
        return {str(key): str(value) for key, value in json.loads(answer).items()}
    except ValueError:
        return {"namespace": "the child that tried it died"}


def _try_in_private_network() -> dict[str, str]:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) != 0:
        return {"namespace": os.strerror(ctypes.get_errno())}
    result = {"namespace": ""}
    try:
        with open("/dev/net/tun", "r+b", buffering=0) as tun:  # noqa: PTH123
            fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", b"doctor0", IFF_TAP_NO_PI))
        result["tap"] = ""
    except OSError as error:
        result["tap"] = error.strerror or str(error)
    for kind, parameters in QDISCS.items():
        command = ("tc", "qdisc", "replace", "dev", "lo", "root", kind, *parameters)
        try:
            made = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
            result[kind] = "" if made.returncode == 0 else made.stderr.strip() or "refused"
        except (OSError, subprocess.TimeoutExpired) as error:
            result[kind] = str(error)
    result["tproxy"] = split_routes.probe()
    return result


def _namespace(probed: dict[str, str]) -> Check:
    wrong = probed["namespace"]
    return _check(
        "network namespaces",
        not wrong,
        wrong or "made one and left it",
        "start with sudo (a container needs --cap-add SYS_ADMIN); the kernel needs CONFIG_NET_NS",
        "demo",
        "run",
        "test",
    )


def _tap(probed: dict[str, str]) -> Check:
    wrong = probed.get("tap", "not tried: no namespace")
    return _check(
        "/dev/net/tun",
        not wrong,
        wrong or "opened a TAP",
        "start with sudo; `modprobe tun` loads the driver (a container needs --device /dev/net/tun)",
        "demo",
        "run",
        "test",
    )


def _tproxy(probed: dict[str, str]) -> Check:
    wrong = probed.get("tproxy", "not tried: no namespace")
    return _check(
        "transparent proxy",
        not wrong,
        wrong or "nftables' tproxy takes packets",
        "start with sudo; `apt-get install nftables`; the kernel needs CONFIG_NFT_TPROXY",
        "split",
    )


def _congestion_controls() -> list[Check]:
    available = _read("/proc/sys/net/ipv4/tcp_available_congestion_control").split()
    found = []
    for name, needed_for in (("reno", ("demo", "run")), ("cubic", ("demo", "run")), ("bbr", ("run",))):
        detail = "available"
        ok = name in available
        if not ok:
            # The kernel loads it by itself the first time it is asked for by name.
            module = f"tcp_{name}.ko"
            modules = Path("/lib/modules") / platform.release() / "kernel" / "net" / "ipv4"
            ok = any(modules.glob(f"{module}*"))
            detail = "loaded on demand" if ok else "not in this kernel"
        remedy = f"`modprobe tcp_{name}`, or a kernel with CONFIG_TCP_CONG_{name.upper()}"
        found.append(_check(f"TCP congestion control {name}", ok, detail, remedy, *needed_for))
    return found


def _timer() -> Check:
    resolution_ns = time.clock_getres(time.CLOCK_MONOTONIC) * 1e9
    late_us = []
    for _ in range(20):
        before = time.perf_counter_ns()
        time.sleep(0.001)
        late_us.append((time.perf_counter_ns() - before - 1_000_000) / 1000)
    return _check(
        "high-resolution timer",
        resolution_ns <= 1000,
        f"{resolution_ns:.0f} ns, a 1 ms sleep ends {statistics.median(late_us):.0f} us late",
        "boot without highres=off and nohpet, with a clock source that is not jiffies",
        "demo",
        "run",
        "test",
    )


def _cores() -> Check:
    count = len(os.sched_getaffinity(0))
    return _check("processor cores", count >= 2, f"{count}", "give the machine two cores or more", "vusrp", "usrp")


def _disk() -> Check:
    free = shutil.disk_usage(root()).free
    return _check(
        "disk space",
        free >= MIN_FREE_BYTES,
        f"{free / 1e9:.1f} GB free",
        f"free {MIN_FREE_BYTES / 1e9:.0f} GB on the file system of {root()}",
        "demo",
        "run",
        "test",
    )


def _qdiscs(probed: dict[str, str]) -> Check:
    lacking = [kind for kind in QDISCS if probed.get(kind, "not tried: no namespace")]
    why = probed.get(lacking[0], "no namespace to try them in") if lacking else ""
    return _check(
        "queueing disciplines",
        not lacking,
        f"without {', '.join(lacking)}: {why.splitlines()[0]}" if lacking else ", ".join(QDISCS),
        "start with sudo; `modprobe -a " + " ".join(f"sch_{kind}" for kind in lacking) + "`",
        "campaign",
    )


def _btf() -> Check:
    path = Path("/sys/kernel/btf/vmlinux")
    ok = path.exists()
    detail = f"{path.stat().st_size / 1e6:.1f} MB" if ok else f"no {path}"
    return _check("kernel type information (BTF)", ok, detail, "a kernel with CONFIG_DEBUG_INFO_BTF", "eln")


def _struct_ops() -> Check:
    # The type exists exactly where the kernel can take a congestion control from BPF.
    try:
        ok = b"\0bpf_struct_ops_tcp_congestion_ops\0" in Path("/sys/kernel/btf/vmlinux").read_bytes()
        detail = "TCP congestion control from BPF" if ok else "not in this kernel"
    except OSError as error:
        ok, detail = False, f"cannot tell without BTF: {error.strerror}"
    remedy = "a kernel of 6.4 or later with CONFIG_BPF_JIT, CONFIG_BPF_SYSCALL and CONFIG_DEBUG_INFO_BTF"
    return _check("BPF struct_ops", ok, detail, remedy, "eln")


def _cgroup2() -> Check:
    # need not be mounted: a run mounts it for itself
    ok = "nodev\tcgroup2" in _read("/proc/filesystems").splitlines()
    return _check("cgroup2", ok, "in this kernel" if ok else "not in this kernel", "CONFIG_CGROUPS", "eln")


def _bpf_tools() -> list[Check]:
    library, detail = _ask_system_python("import ctypes; ctypes.CDLL('libbpf.so.1'); print('libbpf.so.1')")
    headers = Path("/usr/include/bpf/bpf_helpers.h")
    if library and not headers.exists():
        library, detail = False, f"no {headers}"
    return [
        _program("clang", ("clang", "--version"), _apt("clang"), "eln"),
        _program("bpftool", ("bpftool", "version"), _apt("bpftool"), "eln"),
        _check("libbpf", library, detail, _apt("libbpf-dev"), "eln"),
    ]


# --- programs and libraries


def _gnuradio() -> Check:
    ok, detail = _ask_system_python("from gnuradio import gr; print(gr.version())")
    return _check("GNU Radio", ok, detail, _apt("gnuradio"), "demo", "vusrp", "usrp")


def _uhd() -> Check:
    # The Python module does not tell its version.
    if shutil.which("uhd_find_devices"):
        programs, detail = _ask(("uhd_config_info", "--version"))
    else:
        programs, detail = False, "no uhd_find_devices on PATH"
    imported, why = _ask_system_python("import uhd; print(uhd.usrp.MultiUSRP.__name__)")
    if not imported:
        detail += f", no Python module: {why}"
    lacking = [] if programs else ["uhd-host"]
    lacking += [] if imported else ["python3-uhd"]
    return _check("UHD", not lacking, detail, _apt(*lacking), "demo", "vusrp", "usrp")


def _vusrp() -> Check:
    path = UHD_MODULES.relative_to(root())
    ok, detail = False, f"no module in {path}"
    if any(UHD_MODULES.glob("*.so")):
        ok, detail = _ask(("uhd_find_devices", "--args", "type=vusrp"), UHD_MODULE_PATH=str(UHD_MODULES))
        detail = f"UHD finds them through {path}" if ok else detail or "UHD finds none"
    remedy = f"remove {path.parent} and start ./fadelab again, which builds it; .build/setup.log says what went wrong"
    return _check("virtual USRPs", ok, detail, remedy, "demo", "vusrp")


def _liquid() -> Check:
    code = (
        "import ctypes, glob\n"
        "folders = '/usr/local/lib', '/usr/lib/*'\n"
        "names = [name for folder in folders for name in sorted(glob.glob(folder + '/libliquid.so*'))]\n"
        "assert names, 'no libliquid.so'\n"
        "version = ctypes.CDLL(names[0]).liquid_libversion\n"
        "version.restype = ctypes.c_char_p\n"
        "print(version().decode())\n"
    )
    ok, detail = _ask_system_python(code)
    return _check("liquid-dsp", ok, detail, _apt("libliquid1"), "demo", "vusrp", "usrp")


def _wifi() -> Check:
    ok, detail = _ask_system_python("import ieee802_11; print('importable')")
    remedy = (
        "build the project bastibl/gr-ieee802-11, branch maint-3.10 (and bastibl/gr-foo, which it needs), "
        "against GNU Radio; only the `wifi` PHY uses it"
    )
    return _check("gr-ieee802-11", ok, detail, remedy, "wifi PHY")


def _influxdb() -> Check:
    return _program("InfluxDB", ("influxd", "version"), _apt("influxdb"), "dashboard")


def _dygraphs() -> Check:
    path = Path("/usr/share/javascript/dygraphs/dygraph.min.js")
    ok = path.exists()
    return _check("dygraphs", ok, str(path) if ok else f"no {path}", _apt("libjs-dygraphs"), "dashboard")


def _chromium() -> Check:
    return _program("Chromium", ("chromium", "--version"), _apt("chromium"), "tests")


def _tshark() -> Check:
    return _program("tshark", ("tshark", "--version"), _apt("tshark"), "reading captures")


def _iperf3() -> Check:
    return _program("iperf3", ("iperf3", "--version"), _apt("iperf3"), "outside traffic")


# --- help for the looks above


def _check(name: str, ok: bool, detail: str, remedy: str, *needed_for: str) -> Check:
    return Check(name, ok, detail, "" if ok else remedy, needed_for)


def _apt(*packages: str) -> str:
    return f"apt-get install {' '.join(packages)}"


def _program(name: str, command: tuple[str, ...], remedy: str, *needed_for: str) -> Check:
    if shutil.which(command[0]) is None:
        return _check(name, False, f"no {command[0]} on PATH", remedy, *needed_for)
    ok, detail = _ask(command)
    return _check(name, ok, detail, remedy, *needed_for)


def _ask_system_python(code: str) -> tuple[bool, str]:
    """Run `code` in Debian's own Python, where GNU Radio's and UHD's bindings live."""
    return _ask((SYSTEM_PYTHON, "-I", "-c", code))


def _ask(command: tuple[str, ...], **variables: str) -> tuple[bool, str]:
    """Run a program; returns whether it succeeded, and the first line it said or what is wrong."""
    # Our own PYTHONPATH is no business of other programs.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")} | variables
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROGRAM_TIMEOUT_S,
            check=False,
            env=environment,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return False, f"no answer within {PROGRAM_TIMEOUT_S:.0f} s"
    except OSError as error:
        return False, error.strerror or str(error)
    if done.returncode == 0:
        return True, _line(done.stdout, 0)
    return False, _line(done.stderr, -1)


def _line(text: str, index: int) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[index] if lines else ""


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
