"""The processes of a run."""

from pathlib import Path

import pytest

from testbed.live.children import Child
from testbed.paths import root


def test_python_path_of_a_child_is_checkout_then_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "given.py").write_text(
        "import sys\nfrom hosts.jsonlines import write_message\nwrite_message({'path': sys.path})\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    child = Child("given", "given")
    try:
        [message] = child.read()
    finally:
        child.end()
    path = message["path"]
    assert path.index(str(root())) < path.index(str(tmp_path))
