"""The list of mutants fits the sources, so that it cannot go stale unnoticed (README.md says how to run it)."""

from pathlib import Path

import pytest

from tests.mutants.__main__ import main
from tests.mutants.catalogue import ROOT, ListError, check, load
from tests.mutants.running import ERROR, KILLED, SURVIVED, judge

MUTANTS = load()


def test_old_text_occurs_exactly_once_and_new_text_compiles() -> None:
    check(MUTANTS)
    for mutant in MUTANTS:
        compile(mutant.mutated(ROOT), mutant.name, "exec")


@pytest.mark.parametrize(
    ("text", "words"),
    [("one two", "0 times"), ("old old", "2 times")],
)
def test_old_text_must_be_unique(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "core.py").write_text(text)
    mutant = MUTANTS[0].model_copy(update={"file": "core.py", "old": "old", "new": "new"})
    with pytest.raises(ListError, match=words):
        mutant.mutated(tmp_path)


@pytest.mark.parametrize(
    ("status", "output", "verdict", "by"),
    [
        (0, "3 passed, 2 skipped", SURVIVED, ""),
        (1, "\nFAILED tests/test_a.py::test_b[c d] - assert 1 == 2\n", KILLED, "tests/test_a.py::test_b[c d]"),
        (1, "\nERROR tests/test_a.py::test_b\n", KILLED, "tests/test_a.py::test_b"),
        (2, "1 error", ERROR, "pytest ended with 2: 1 error"),
        (5, "no tests ran", ERROR, "pytest ended with 5: no tests ran"),
    ],
)
def test_only_a_failed_test_kills(status: int, output: str, verdict: str, by: str) -> None:
    outcome = judge(status, output, 1.0)
    assert (outcome.verdict, outcome.by) == (verdict, by)


def test_glob_without_a_match_is_one_line_and_exit_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "nothing-*"]) == 2
    assert capsys.readouterr().err.startswith("mutants: no mutant has a name like 'nothing-*'")
