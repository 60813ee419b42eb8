"""Copies of a process that run another module."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from testbed.live import copies

#: makes a copy that runs the module `given`, and says what came of it
_PARENT = """
import os, subprocess, sys
from testbed.live import copies
print("said before", end="")
passed, other = os.open("/dev/null", os.O_RDONLY), os.open("/dev/null", os.O_RDONLY)
environment = {"PATH": os.environ["PATH"], "ONLY": "this"}
child = subprocess.Popen(
    ["-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=[passed],
    restore_signals=False, preexec_fn=copies.entry("given", environment, [passed]),
)
out, err = child.communicate()
sys.exit(repr((child.returncode, out.decode(), err.decode(), passed)))
"""


def copy(tmp_path: Path, module: str) -> tuple[int, str, str, int]:
    """Status, output and errors of a copy that runs a module, and the descriptor that it was given."""
    (tmp_path / "given.py").write_text(module)
    paths = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    parent = subprocess.run(
        [sys.executable, "-P", "-c", _PARENT],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert parent.stdout == "said before"
    status, out, err, passed = eval(parent.stderr)
    return status, out, err, passed


def test_copy_is_the_modules_main_program_with_its_own_environment_and_descriptors(tmp_path: Path) -> None:
    module = "import os\nprint(__name__, sorted(os.environ), os.listdir('/proc/self/fd')[:-1])"
    status, out, err, passed = copy(tmp_path, module)
    # the last one is that of the folder itself
    assert (status, err) == (0, "")
    assert out == f"__main__ ['ONLY', 'PATH'] {[str(number) for number in (0, 1, 2, passed)]}\n"


@pytest.mark.parametrize(
    ("module", "expected"),
    [("raise SystemExit(2)", 2), ("raise SystemExit", 0), ("raise SystemExit('no')", 1), ("1 / 0", 1)],
)
def test_status_is_that_of_the_module(module: str, expected: int, tmp_path: Path) -> None:
    status, _, err, _ = copy(tmp_path, module)
    assert status == expected
    assert ("ZeroDivisionError" in err) == ("/ 0" in module)
    assert (err == "no\n") == ("'no'" in module)


def test_copy_has_pythons_signals_and_collector(tmp_path: Path) -> None:
    module = """
import gc, os, signal
assert gc.isenabled()
assert signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN
read, write = os.pipe()
os.close(read)
try:
    os.write(write, b"nobody reads this")
except BrokenPipeError:
    print("an exception")
"""
    assert copy(tmp_path, module)[:3] == (0, "an exception\n", "")


def test_process_of_several_threads_is_not_copied() -> None:
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    try:
        with pytest.raises(RuntimeError, match="several threads"):
            copies.entry("given", {}, [])
    finally:
        end.set()
        thread.join()
