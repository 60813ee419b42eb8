"""Programs in processes of their own, which tests kill, and files that cannot grow, as on a full disk."""

import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]


@contextmanager
def saying(program: str, *args: str | Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run Python code until it has said a line; give its process and the line. What the test leaves is killed."""
    command = [sys.executable, "-c", program, *args]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Let the kernel refuse to write beyond, as it does on a full disk; for root, too."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
