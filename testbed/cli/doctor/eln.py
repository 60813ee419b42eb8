"""Looks for the needs of ELN in the kernel's TCP: eBPF and the tools that build it."""

from pathlib import Path

from testbed.cli.doctor.look import Look, Seen, apt, ask_system_python, exists, program, read

_BTF = Path("/sys/kernel/btf/vmlinux")
_HEADERS = Path("/usr/include/bpf/bpf_helpers.h")


def _btf() -> Seen:
    return Seen(True, f"{_BTF.stat().st_size / 1e6:.1f} MB") if _BTF.exists() else exists(_BTF)


def _struct_ops() -> Seen:
    # the type exists exactly where the kernel can take a congestion control from BPF
    try:
        found = b"\0bpf_struct_ops_tcp_congestion_ops\0" in _BTF.read_bytes()
    except OSError as error:
        return Seen(False, f"cannot tell without BTF: {error.strerror}")
    return Seen(found, "TCP congestion control from BPF" if found else "not in this kernel")


def _cgroup2() -> Seen:
    # need not be mounted: a run mounts it for itself
    found = "nodev\tcgroup2" in read("/proc/filesystems").splitlines()
    return Seen(found, "in this kernel" if found else "not in this kernel")


def _libbpf() -> Seen:
    library = ask_system_python("import ctypes; ctypes.CDLL('libbpf.so.1'); print('libbpf.so.1')")
    return library if not library.ok or _HEADERS.exists() else exists(_HEADERS)


LOOKS = (
    Look("kernel type information (BTF)", _btf, "a kernel with CONFIG_DEBUG_INFO_BTF", ("eln",)),
    Look(
        "BPF struct_ops",
        _struct_ops,
        "a kernel of 6.4 or later with CONFIG_BPF_JIT, CONFIG_BPF_SYSCALL and CONFIG_DEBUG_INFO_BTF",
        ("eln",),
    ),
    Look("cgroup2", _cgroup2, "CONFIG_CGROUPS", ("eln",)),
    program("clang", ("clang", "--version"), "clang", "eln"),
    program("bpftool", ("bpftool", "version"), "bpftool", "eln"),
    Look("libbpf", _libbpf, apt("libbpf-dev"), ("eln",)),
)
