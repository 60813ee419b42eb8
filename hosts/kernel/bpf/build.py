"""Making BPF objects of the C files beside this one, for the kernel that runs, or for that of a machine.

Rules kept
- Types come from the kernel itself (BTF), so that no kernel headers are needed.
- Objects are kept by what they were made of: sources, options, the kernel's types. They appear whole.
"""

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from hosts.errors import HostError

BTF = Path("/sys/kernel/btf/vmlinux")
#: the type a kernel has that takes congestion controls from BPF
STRUCT_OPS_TYPE = b"\0bpf_struct_ops_tcp_congestion_ops\0"
_SOURCES = Path(__file__).parent
_FLAGS = ("-g", "-O2", "-Wall", "-Werror", "-target", "bpf", "-mcpu=v3")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_TIMEOUT_S = 120.0


def build(source: str, cache: Path, *, btf: Path | None = None, **macros: str) -> Path:
    """Return the object of `source`, a C file's name without .bpf.c, below `cache`; each macro is a C string.

    `btf` has the types of the kernel that is to load it; None: this one's. Raises HostError when the kernel, the
    compiler or bpftool cannot do it.
    """
    btf = BTF if btf is None else btf
    types = _kernel_types(btf)
    defines = [f'-D{name}="{value}"' for name, value in macros.items()]
    digest = hashlib.sha256(types)
    for part in (*(path.read_bytes() for path in sorted(_SOURCES.glob("*.[ch]"))), repr((_FLAGS, defines)).encode()):
        digest.update(part)
    made = cache / f"{source}-{digest.hexdigest()[:16]}.o"
    if not made.exists():
        _make(_SOURCES / f"{source}.bpf.c", made, defines, btf)
    return made


def _kernel_types(btf: Path) -> bytes:
    try:
        types = btf.read_bytes()
    except OSError as error:
        raise HostError(
            f"ELN needs a kernel with type information (CONFIG_DEBUG_INFO_BTF): {btf}: {error.strerror}"
        ) from None
    if STRUCT_OPS_TYPE not in types:
        raise HostError("ELN needs a kernel that takes congestion controls from BPF (struct_ops): CONFIG_BPF_JIT")
    return types


def _make(source: Path, made: Path, defines: list[str], btf: Path) -> None:
    try:
        made.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=made.parent) as folder:
            header = Path(folder) / "vmlinux.h"
            header.write_text(_output_of("bpftool", "btf", "dump", "file", str(btf), "format", "c"))
            draft = Path(folder) / made.name
            _output_of("clang", *_FLAGS, *defines, f"-I{folder}", "-c", str(source), "-o", str(draft))
            draft.replace(made)
    except OSError as error:
        raise HostError(f"cannot write {made.parent}: {error.strerror}") from None


def found(program: str) -> str | None:
    """Where a program is; bpftool's place is not on everybody's PATH."""
    return shutil.which(program) or shutil.which(program, path=_PATH)


def _output_of(program: str, *arguments: str) -> str:
    path = found(program)
    if path is None:
        raise HostError(f"ELN needs {program}: apt-get install {program}")
    done = subprocess.run(
        [path, *arguments], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False, stdin=subprocess.DEVNULL
    )
    if done.returncode != 0:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        wrong = next((line for line in lines if "error" in line), lines[-1] if lines else "no reason given")
        hint = "; apt-get install libbpf-dev" if "'bpf/" in wrong else ""
        raise HostError(f"{program} failed: {wrong}{hint}")
    return done.stdout
