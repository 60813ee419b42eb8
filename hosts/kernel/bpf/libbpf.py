"""The functions needed of libbpf, by ctypes.

Read first: bpf(2); libbpf's bpf.h and libbpf.h; the kernel's Documentation/bpf/libbpf.

Rules kept
- Everything that is loaded or attached lives as long as a descriptor of this process: a killed process leaves nothing
  loaded. For a congestion control that takes BPF_F_LINK (Linux 6.4), which libbpf has known since 1.2 only.
- Nothing is pinned.
"""

import ctypes
import os
from pathlib import Path
from typing import Any

from hosts.errors import HostError

_F_LINK = 1 << 13  # linux/bpf.h
_STRUCT_OPS = 44
_VERSION_THAT_LINKS = (1, 2)
_LOG_BYTES = 1 << 16

_PRINT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)


class Libbpf:
    """The library, and its last complaint. Raises HostError when it is missing."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL("libbpf.so.1", use_errno=True)
        except OSError:
            raise HostError("ELN needs libbpf: apt-get install libbpf1") from None
        self._libc = ctypes.CDLL(None)
        self.complaints: list[str] = []
        # the library keeps a pointer to it
        self._print = _PRINT(self._note)
        self._library.libbpf_set_print(self._print)
        for name in ("bpf_object__open_file", "bpf_object__find_map_by_name", "bpf_object__find_program_by_name"):
            getattr(self._library, name).restype = ctypes.c_void_p
        for name in ("bpf_program__attach_cgroup", "bpf_map__attach_struct_ops"):
            getattr(self._library, name).restype = ctypes.c_void_p
        self.version = (int(self._library.libbpf_major_version()), int(self._library.libbpf_minor_version()))

    def pointer(self, name: str, *arguments: Any) -> ctypes.c_void_p:
        """Call a function that returns a pointer; raises OSError when it is NULL."""
        found = getattr(self._library, name)(*arguments)
        if not found:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return ctypes.c_void_p(found)

    def number(self, name: str, *arguments: Any) -> int:
        """Call a function that returns a number; raises OSError when it is below 0."""
        found = int(getattr(self._library, name)(*arguments))
        if found < 0:
            raise OSError(-found, os.strerror(-found))
        return found

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function whose answer does not matter."""
        getattr(self._library, name)(*arguments)

    def _note(self, level: int, format_: bytes, arguments: int) -> int:
        # warnings are level 0; the verifier's whole log is one of them
        if level == 0:
            text = ctypes.create_string_buffer(_LOG_BYTES)
            self._libc.vsnprintf(text, ctypes.c_size_t(_LOG_BYTES), format_, ctypes.c_void_p(arguments))
            self.complaints.append(text.value.decode(errors="replace").strip())
        return 0


class Object:
    """One BPF object, loaded from `open` to `close`."""

    def __init__(self, library: Libbpf, path: Path) -> None:
        self._library = library
        self._links: list[ctypes.c_void_p] = []
        self._descriptors: list[int] = []
        self._object: ctypes.c_void_p | None = library.pointer("bpf_object__open_file", os.fsencode(path), None)

    def share_map(self, name: str, owner: "Object") -> None:
        """Before loading: use a map of another object's that is loaded."""
        self._library.number("bpf_map__reuse_fd", self._map(name), owner.map_fd(name))

    def map_fd(self, name: str) -> int:
        """The descriptor of a map of this object, which is loaded."""
        return self._library.number("bpf_map__fd", self._map(name))

    def load(self, struct_ops: str | None = None) -> None:
        """Hand all of it to the kernel; `struct_ops` is to be attached. Raises OSError."""
        if struct_ops is not None:
            self._library.number("bpf_map__set_map_flags", self._map(struct_ops), _F_LINK)
        self._library.number("bpf_object__load", self._object)

    def attach_cgroup(self, program: str, descriptor: int) -> None:
        """Attach a program to a control group. Raises OSError."""
        found = self._library.pointer("bpf_object__find_program_by_name", self._object, program.encode())
        self._links.append(self._library.pointer("bpf_program__attach_cgroup", found, descriptor))

    def attach_struct_ops(self, name: str) -> None:
        """Register the structure of a struct_ops map. Raises OSError, FileExistsError when the name is taken."""
        found = self._map(name)
        link = self._library.pointer("bpf_map__attach_struct_ops", found)
        if self._library.version >= _VERSION_THAT_LINKS:
            self._links.append(link)
            return
        # the map has been filled in, no more: the link is ours to make, and to undo
        self._library.call("bpf_link__disconnect", link)
        self._library.call("bpf_link__destroy", link)
        self._descriptors.append(self._library.number("bpf_link_create", self.map_fd(name), 0, _STRUCT_OPS, None))

    def close(self) -> None:
        """Detach and unload; idempotent."""
        for link in reversed(self._links):
            self._library.call("bpf_link__destroy", link)
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._links, self._descriptors = [], []
        if self._object is not None:
            self._library.call("bpf_object__close", self._object)
            self._object = None

    def _map(self, name: str) -> ctypes.c_void_p:
        return self._library.pointer("bpf_object__find_map_by_name", self._object, name.encode())
