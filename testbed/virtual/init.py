#!/usr/bin/python3 -ISE
"""The first process of a machine in virtual time: makes its file system, seeds its entropy, and runs one command.

In user mode the machine's root is that of the host, read-only. Over it lies a file system in memory, so that every
file can be written and no write reaches the host, but for the folders that the order names. In QEMU the root is a file
system in memory that has copies of the host's files, and those folders are sent to the host at the end.

Nothing of a start's own, such as the name of a folder, may be on the kernel's command line, since the kernel mixes that
into its entropy. So `machine.py` copies this file into a folder of the host, in which it starts the kernel, and
`qemu.py` into the machine's files.

Needs the standard library alone and imports little of it (no pathlib): this is a part of each start.
"""
# ruff: noqa: PTH102, PTH103, PTH110, PTH123, PTH208, PTH211

import contextlib
import ctypes
import fcntl
import json
import mmap
import os
import signal
import struct
from typing import Any

#: linux/mount.h
_MS_MOVE, _MS_REC, _MS_PRIVATE = 0x2000, 0x4000, 0x40000
#: linux/random.h
_RNDADDENTROPY, _RNDRESEEDCRNG = 0x40085203, 0x5207
#: linux/reboot.h
_POWER_OFF = 0x4321FEDC
#: the folder of the host in which the kernel was started, while its files are the root
_START = "/proc/self/cwd"
#: the same in the machine, with the order, the command's output and its status
_PLACE = "/run/machine"
#: a folder that every Debian has, where the new root is put together
_ASSEMBLY = "/mnt"
#: ports of virtio-serial
_PORTS = "/sys/class/virtio-ports"
#: those that no use of the kernel loads by itself
_MODULES = ("tun",)
#: x86-64: a `nop`, and a `jmp` by 32 bits
_NOP, _JUMP = b"\x90", b"\xe9"
#: instructions that QEMU translates at once (TCG_MAX_INSNS)
_BLOCK = 512

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Carry out the order, and end the machine."""
    # QEMU's has no /proc yet
    user_mode = os.path.exists(_START)
    place = os.path.realpath(_START) if user_mode else _PLACE
    with open(f"{place}/order.json") as file:
        order = json.load(file)
    if user_mode:
        _make_root({_PLACE: place, **order["folders"]})
    else:
        _complete_root()
    _seed(bytes.fromhex(order["entropy"]))
    if not user_mode:
        _keep_busy()
    status = _run(order, "/dev/tty0" if user_mode else "/dev/ttyS0")
    with open(f"{_PLACE}/status", "w") as file:
        file.write(str(status))
    if not user_mode:
        _send([f"{_PLACE}/status", *order["folders"]])
    os.sync()
    _libc.reboot(_POWER_OFF)


def _mount(source: str, target: str, kind: str | None, options: str = "", flags: int = 0) -> None:
    arguments = (source.encode(), target.encode(), None if kind is None else kind.encode(), flags, options.encode())
    if _libc.mount(*arguments) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"mount {source} on {target}: {os.strerror(error)}")


def _make_root(folders: dict[str, str]) -> None:
    """Lay memory over the host's files; the keys of `folders` are places of the host's own folders."""
    _mount("memory", _ASSEMBLY, "tmpfs")
    for name in ("upper", "work", "root"):
        os.mkdir(f"{_ASSEMBLY}/{name}")
    root = f"{_ASSEMBLY}/root"
    layers = f"lowerdir=/,upperdir={_ASSEMBLY}/upper,workdir={_ASSEMBLY}/work"
    _mount("root", root, "overlay", layers)
    _mount_kernels(root)
    _mount("memory", f"{root}/run", "tmpfs", "mode=1777")
    for place, folder in folders.items():
        os.makedirs(root + place, exist_ok=True)
        _mount("host", root + place, "hostfs", folder)
    os.chdir(root)
    _mount(".", "/", None, flags=_MS_MOVE)
    os.chroot(".")
    os.chdir("/")
    os.symlink("/proc/self/fd", "/dev/fd")


def _mount_kernels(root: str) -> None:
    """Mount the file systems that are the kernel's own."""
    for kind, place in (("proc", "proc"), ("sysfs", "sys"), ("devtmpfs", "dev")):
        _mount(kind, f"{root}/{place}", kind)
    for place in ("dev/pts", "dev/shm"):
        os.mkdir(f"{root}/{place}")
    _mount("devpts", f"{root}/dev/pts", "devpts", "ptmxmode=0666")
    _mount("memory", f"{root}/dev/shm", "tmpfs", "mode=1777")
    _mount("cgroup2", f"{root}/sys/fs/cgroup", "cgroup2")


def _complete_root() -> None:
    """Mount what copies of files cannot be, and give the command's output its ways out of QEMU."""
    _mount_kernels("")
    os.symlink("/proc/self/fd", "/dev/fd")
    for name in ("out", "err", "files"):
        os.symlink(_port(name), f"{_PLACE}/{name}")
    for module in _MODULES:
        if os.spawnv(os.P_WAIT, "/usr/sbin/modprobe", ["modprobe", module]) != 0:
            raise OSError(f"the kernel has no module {module}")
    with open("/proc/sys/kernel/sched_rt_runtime_us", "w") as file:
        # processes of the run are never kept from running because they have run for long
        file.write("-1")


def _port(name: str) -> str:
    """Return the device of a port of virtio-serial."""
    for entry in sorted(os.listdir(_PORTS)):
        with open(f"{_PORTS}/{entry}/name") as file:
            if file.read().strip() == name:
                return f"/dev/{entry}"
    raise OSError(f"the machine has no port {name}")


def _keep_busy() -> None:
    """Start a process that runs when no other does.

    A processor of QEMU that waits lets another thread move its clock, in a race with its own last instructions. One
    that never waits has a clock that only its instructions move. Empty ones cost the host next to nothing: it
    translates a whole page of them into a jump.
    """
    if os.fork() != 0:
        return
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    # as many as QEMU translates at once, the jump back among them
    page.write(_NOP * (_BLOCK - 1) + _JUMP + struct.pack("<i", -(_BLOCK - 1) - 5))
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()


def _send(paths: list[str]) -> None:
    """Send files and folders to the host."""
    import tarfile

    with open(f"{_PLACE}/files", "wb") as port, tarfile.open(fileobj=port, mode="w|") as archive:
        for path in paths:
            archive.add(path)


def _seed(octets: bytes) -> None:
    """Give the kernel all the entropy that it is going to have."""
    with open("/dev/urandom", "wb") as device:
        fcntl.ioctl(device, _RNDADDENTROPY, struct.pack("ii", 8 * len(octets), len(octets)) + octets)
        fcntl.ioctl(device, _RNDRESEEDCRNG)


def _run(order: dict[str, Any], console: str) -> int:
    """Run the command; return its exit status, that of a shell for a command that a signal ended."""
    child = os.fork()
    if child == 0:
        _become(order)
    if os.fork() == 0:
        _obey(child, console)
    while True:
        # the first process inherits orphans
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _obey(child: int, console: str) -> None:
    """Pass the signals that the host names on to the command's processes; end the machine with the host's process."""
    with open(console) as lines:
        for line in lines:
            with contextlib.suppress(OSError):
                os.killpg(child, int(line))
    _libc.reboot(_POWER_OFF)


def _become(order: dict[str, Any]) -> None:
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for number, name in ((0, "/dev/null"), (1, f"{_PLACE}/out"), (2, f"{_PLACE}/err")):
        descriptor = os.open(name, os.O_RDWR | os.O_APPEND | os.O_NOCTTY)
        os.dup2(descriptor, number)
        os.close(descriptor)
    try:
        os.chdir(order["cwd"])
        os.execvpe(order["command"][0], order["command"], order["environment"])
    except OSError as error:
        os.write(2, f"fadelab: {order['command'][0]}: {error.strerror}\n".encode())
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    main()
