"""Two faults of processes, as `benchmarks.process_faults` lives through all of them."""

from pathlib import Path

import pytest

from tests.harness.process_faults.cases import CASES
from tests.harness.process_faults.stage import outcome
from tests.hosts.harness import needs_network

pytestmark = [*needs_network, pytest.mark.patient]


@pytest.mark.parametrize("name", ["station st killed", "database killed"])
def test_statement_holds_after_the_fault(name: str, tmp_path: Path) -> None:
    [case] = [case for case in CASES if case.name == name]
    assert outcome(case, tmp_path, 1) == ""
