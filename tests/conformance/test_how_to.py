"""The examples of docs/how-to/, all in place: each is a plugin by its file alone, and no test of plugins minds."""

import json
import os
import re
import shlex
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.conformance.examples import ROOT, commit, copied, put, run

COUNTER = ROOT / "docs" / "how-to" / "counter.md"
DOCUMENTS = sorted(path for path in (ROOT / "docs" / "how-to").glob("*.md") if path.name != "README.md")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with the files of all examples, committed."""
    copy = copied(tmp_path_factory.mktemp("how-to"))
    for document in DOCUMENTS:
        files = re.findall(r"```python\n# (\S+\.py)\n(.*?)```", document.read_text(), re.DOTALL)
        assert bool(files) != (document == COUNTER)
        for path, code in files:
            put(copy / path, code)
    commit(copy)
    return copy


@pytest.mark.slow
@pytest.mark.interpreted
def test_commands_of_the_examples_give_results(checkout: Path) -> None:
    def figures(document: Path) -> list[float]:
        [command] = re.findall(r"```sh\n(?:sudo )?\./fadelab (.*?)\n```", document.read_text(), re.DOTALL)
        out = checkout / "runs" / document.stem
        # other tests go on beside it: whether the machine kept the clock is not what is asked here
        late = ["--allow-late"] if command.startswith("run ") else []
        done = run(["./fadelab", *shlex.split(command), *late, "--json", "--out", str(out)], checkout, pure=False)
        assert done.returncode == 0, done.stderr
        result = json.loads(done.stdout)
        # of a run, or of each cell of a paper
        return [cell["ours"]["median"] for cell in result["cells"]] if "cells" in result else [result["goodput_bps"]]

    documents = [path for path in DOCUMENTS if os.geteuid() == 0 or "sudo ./fadelab" not in path.read_text()]
    with ThreadPoolExecutor(2) as pool:
        for document, found in zip(documents, pool.map(figures, documents), strict=True):
            assert found, document
            assert min(found) > 0, document


#: what a run records, a chart shows and a board asks for
_COUNTED = """
import sys
from dashboard.charts import CHARTS
from dashboard.grafana_boards.boards import files
from pyarrow.parquet import read_table
print(max(read_table(sys.argv[1]).column("timed_blocks").to_pylist()))
print(sum(line.label("up") == "up timed blocks" for chart in CHARTS for line in chart.lines))
print(files()["boards/link.json"].count("timed_blocks"))
"""


@pytest.mark.slow
@pytest.mark.interpreted
def test_a_counter_reaches_page_and_boards(tmp_path: Path) -> None:
    checkout = copied(tmp_path)
    edits = re.findall(r"^@@ (\S+)\n((?:[ +].*\n)+)", COUNTER.read_text(), re.MULTILINE)
    assert 0 < len(edits) <= 3
    for path, lines in edits:
        context = re.sub(r"^\+.*\n", "", lines, flags=re.MULTILINE)
        before, after = (re.sub("^.", "", part, flags=re.MULTILINE) for part in (context, lines))
        text = (checkout / path).read_text()
        assert text.count(before) == 1
        (checkout / path).write_text(text.replace(before, after))
    done = run(["./fadelab", "run", "scenarios/lossy-link.yaml", "--tier", "model", "--out", "runs/counted"], checkout)
    assert done.returncode == 0, done.stderr
    [records] = (checkout / "runs" / "counted").glob("*/link.parquet")
    done = run(["python", "-c", _COUNTED, str(records)], checkout)
    assert done.returncode == 0, done.stderr
    counted, lines, queries = map(int, done.stdout.split())
    assert counted > 0
    assert lines == 1
    assert queries > 0


def of_plugins(checkout: Path) -> list[str]:
    """Test files that a new plugin may concern: those that name a registry, and those of the whole house."""
    sources = [path for path in checkout.rglob("*.py") if "tests" not in path.relative_to(checkout).parts]
    declared = [re.findall(r"^(\w+): Final = Registry\(", path.read_text(), re.MULTILINE) for path in sources]
    registry = re.compile(rf"\b({'|'.join(name for names in declared for name in names)})\b")
    tests = [*checkout.glob("tests/**/test_*.py")]
    house = checkout / "tests"
    return sorted(str(path) for path in tests if path.parent == house or registry.search(path.read_text()))


@pytest.mark.slow
@pytest.mark.interpreted
# minutes of a processor, beside other workers: the limit is against hanging
@pytest.mark.timeout(950)
def test_tests_of_plugins_pass_with_all_examples_in_place(checkout: Path) -> None:
    files = of_plugins(checkout)
    for known in ("tests/conformance/test_schemes.py", "tests/test_documents.py", "tests/test_arrows.py"):
        assert str(checkout / known) in files
    done = run(["pytest", "-q", "--part=quick", "-n2", "--dist=loadfile", *files], checkout, limit_s=900)
    assert done.returncode == 0, done.stdout[-8000:]
