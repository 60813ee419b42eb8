"""The examples of docs/how-to/, done as they are written: a file that is not in the checkout becomes a plugin."""

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.conformance.examples import ROOT, run

DOCUMENTS = sorted(path for path in (ROOT / "docs" / "how-to").glob("*.md") if path.name != "README.md")


@pytest.mark.slow
@pytest.mark.interpreted
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_an_example_is_a_plugin_at_once(document: Path, tmp_path: Path) -> None:
    text = document.read_text()
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    folders = set()
    for path, code in re.findall(r"```python\n# (\S+\.py)\n(.*?)```", text, re.DOTALL):
        assert not (ROOT / path).exists()
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(code)
        # a plugin may be a folder of its own
        folders.add(next(str(parent) for parent in Path(path).parents if (ROOT / parent).is_dir()))
    assert folders

    [command] = re.findall(r"```sh\n\./fadelab (.*?)\n```", text, re.DOTALL)
    words = ["./fadelab", *shlex.split(command), "--json", "--out", str(tmp_path / "runs")]
    done = run(words, tmp_path, folders)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    # of a run, or of each cell of a paper
    figures = [cell["ours"]["median"] for cell in result["cells"]] if "cells" in result else [result["goodput_bps"]]
    assert figures
    assert all(figure > 0 for figure in figures)

    plural = re.sub("([^h])ys$", r"\1ies", f"{document.stem.replace('-', '_')}s")
    conformance = [f"tests/conformance/test_{plural}.py", "tests/conformance/test_options.py"]
    declared = re.search(r'name="([^"]+)"|kind: ClassVar\[str\] = "([^"]+)"', text)
    assert declared is not None
    # the others of its kind are tested without it
    chosen = f"{declared[1] or declared[2]} or document"
    done = run(["pytest", "-q", "-k", chosen, *conformance], tmp_path, folders)
    # all but what looks for it in documents, which the checkout does not have
    passed = re.search(r"\n\d failed, (\d+) passed", done.stdout)
    assert passed is not None, done.stdout
    assert int(passed[1]) > 3, done.stdout
    failed = re.findall(r"^FAILED \S+::(\w+)", done.stdout, re.MULTILINE)
    assert failed
    assert all("document" in name for name in failed), done.stdout
