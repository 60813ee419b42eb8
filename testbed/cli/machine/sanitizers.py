"""The parts in C++ under sanitizers and clang-tidy: the commands of `fadelab test --sanitize`.

Read first: GCC's -fsanitize; `flowgraphs/native/tests/`, `flowgraphs/vusrp/tests/`, the programs that are run.

Each part is built twice in `.build/sanitize/`: with AddressSanitizer, LeakSanitizer and UndefinedBehaviorSanitizer, and
with ThreadSanitizer, which excludes them. A sanitizer's report makes its program fail.
"""

import shutil
from pathlib import Path

from testbed.paths import root

_PARTS = ("native", "vusrp")
#: by folder: as GCC's -fsanitize takes them
_SANITIZERS = {"address": "address,undefined", "thread": "thread"}
_TIDY = "run-clang-tidy"


def commands(processors: int) -> list[tuple[str, tuple[str, ...] | None]]:
    """Return the names and the commands of all steps, in order; no command where clang-tidy is not installed."""
    found: list[tuple[str, tuple[str, ...] | None]] = []
    for part in _PARTS:
        for name, sanitizers in _SANITIZERS.items():
            build = _build(part, name)
            source = str(root() / "flowgraphs" / part)
            found += [
                (f"configure {part}, {name}", ("cmake", "-S", source, "-B", str(build), f"-DSANITIZE={sanitizers}")),
                (f"build {part}, {name}", ("cmake", "--build", str(build), "--parallel", str(processors))),
                (f"ctest {part}, {name}", ("ctest", "--test-dir", str(build), "--output-on-failure")),
            ]
    tidy = shutil.which(_TIDY)
    for part in _PARTS:
        # the build for AddressSanitizer has the commands of all files
        options = ("-quiet", "-j", str(processors), "-p", str(_build(part, "address")), f"flowgraphs/{part}/")
        found.append((f"clang-tidy {part}", None if tidy is None else (tidy, *options)))
    return found


def _build(part: str, name: str) -> Path:
    return root() / ".build" / "sanitize" / f"{part}-{name}"
