"""The build of the compiled cores: mypyc and the C compiler, in a process of their own.

Read first: `common/compiled.py`, which finds the build.

Rule kept: a build is whole. It is made in a folder beside its place, with its stamp last, and takes its place in one
step; processes that run on the one before keep that.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from common.compiled import BUILD, GROUP, ROOT, digest
from testbed.errors import FadelabError

#: the cores: a folder, or a file
CORES = (
    "common/sequence.py",
    "common/units.py",
    "tcpip",
    "channel",
    "linklayer",
    "hosts/engine",
    "hosts/tcp",
    "testbed/model/virtual_clock.py",
    "testbed/model/split_station.py",
    "testbed/model/station_driver.py",
    "testbed/model/transfers.py",
    "testbed/model/wired_link.py",
)
#: files of the cores that gain nothing: they are read once in a run, or they are declarations
PURE = (
    "channel/replay.py",
    "channel/trace.py",
    "channel/delay_profiles.py",
    "hosts/engine/agent.py",
    "hosts/engine/results.py",
    "hosts/tcp/profiles/*",
    "linklayer/schemes/*",
    "linklayer/slacp/describe.py",
    "linklayer/station_counts.py",
)
#: called with the number of files compiled so far, and of all
Told = Callable[[int, int], None]

_NEW = BUILD.with_name("compiled.new")
_OLD = BUILD.with_name("compiled.old")
_LOG = BUILD.with_name("compile.log")
_LOCK = BUILD.with_name("compile.lock")


def sources() -> list[str]:
    """Return the files to compile, relative to the root.

    A file that git does not know, such as a plugin being written, is left interpreted: it may have types that mypyc
    refuses.
    """
    found: list[Path] = []
    for core in CORES:
        path = ROOT / core
        found += [path] if path.suffix else sorted(path.rglob("*.py"))
    relative, tracked = [path.relative_to(ROOT) for path in found], _tracked()
    return [
        str(path)
        for path in relative
        # the packages at the top find the build
        if len(path.parts) > 2 or path.name != "__init__.py"
        if not any(path.match(pattern) for pattern in PURE)
        if tracked is None or str(path) in tracked
    ]


def _tracked() -> set[str] | None:
    """The files that git knows, None without git."""
    try:
        command = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT), "ls-files", "-z"]
        return set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0"))
    except (OSError, subprocess.CalledProcessError):
        return None


def build(told: Told = lambda done, of: None) -> int:
    """Compile the cores; return the number of modules. Raises FadelabError."""
    _require_compiler()
    try:
        BUILD.parent.mkdir(exist_ok=True)
        with _LOCK.open("w") as lock:
            # another process may be at it
            fcntl.flock(lock, fcntl.LOCK_EX)
            return _build(told)
    except OSError as error:
        raise FadelabError(f"{BUILD.parent} cannot be written: {error.strerror}; be its owner, or root") from None


def _build(told: Told) -> int:
    for rest in (_NEW, _OLD):
        shutil.rmtree(rest, ignore_errors=True)
    stamp = {name: digest(Path(name)) for name in sources()}
    _run_child(told)
    made = _NEW / "lib"
    (made / "stamp.json").write_text(json.dumps(stamp, indent=1))
    if os.geteuid() == 0:
        # as the launcher does: files made with sudo belong to the owner of the checkout
        for path in (made, *made.rglob("*"), _LOCK, _LOG):
            shutil.chown(path, ROOT.stat().st_uid, ROOT.stat().st_gid)
    if BUILD.exists():
        BUILD.rename(_OLD)
    made.rename(BUILD)
    for rest in (_NEW, _OLD):
        shutil.rmtree(rest, ignore_errors=True)
    return len(stamp)


def _require_compiler() -> None:
    header = Path(sysconfig.get_path("include")) / "Python.h"
    if not header.exists() or shutil.which("gcc") is None:
        raise FadelabError("the cores cannot be compiled: apt-get install gcc python3-dev")


def _run_child(told: Told) -> None:
    environment = {**os.environ, "FADELAB_PURE": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-P", "-m", __name__]
    with (
        _LOG.open("w") as log,
        subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=log, text=True) as child,
    ):
        try:
            assert child.stdout is not None
            for line in child.stdout:
                done, _, of = line.partition("/")
                if done.isdecimal():
                    told(int(done), int(of))
        except BaseException:
            child.terminate()
            raise
    if child.returncode:
        raise FadelabError(f"the cores have not been compiled (status {child.returncode}): {_LOG} says why")


def _compile_on_all_cores(compiler: Any, told: Told) -> None:
    """Let setuptools' compiler, which compiles one file after the other, compile on all cores."""

    def compile_all(files: Sequence[str], output_dir: str, **options: Any) -> list[str]:
        _, objects, extra, flags, made_from = compiler._setup_compile(
            output_dir, options["macros"], options["include_dirs"], files, options["depends"], options["extra_postargs"]
        )
        arguments = compiler._get_cc_args(flags, options["debug"], None)

        def one(made: str) -> None:
            compiler._compile(made, *made_from[made], arguments, extra, flags)

        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            for done, _ in enumerate(pool.map(one, objects), 1):
                if len(objects) > 1:
                    told(done, len(objects))
        return list(objects)

    compiler.compile = compile_all


def main() -> None:
    """Compile into `_NEW`, and tell of each file on stdout."""
    from mypyc.build import mypycify
    from setuptools import setup
    from setuptools.command.build_ext import build_ext

    class Build(build_ext):  # type: ignore[misc]
        def build_extensions(self) -> None:
            _compile_on_all_cores(self.compiler, lambda done, of: print(f"{done}/{of}", flush=True))
            super().build_extensions()

    extensions = mypycify(
        ["--config-file", "pyproject.toml", *sources()],
        opt_level="2",
        debug_level="0",
        multi_file=True,
        target_dir=str(_NEW / "c"),
        group_name=GROUP.removesuffix("__mypyc"),
    )
    folders = ["--build-lib", str(_NEW / "lib"), "--build-temp", str(_NEW / "o")]
    setup(
        name="fadelab-cores",
        ext_modules=extensions,
        packages=[],
        py_modules=[],
        cmdclass={"build_ext": Build},
        script_args=["--quiet", "build_ext", *folders],
    )


if __name__ == "__main__":
    main()
