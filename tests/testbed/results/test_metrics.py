"""Names of metrics, and their numbers in a result."""

import pytest

from testbed.results.metrics import check_metric, metric


@pytest.mark.parametrize(
    "name", ["goodput_bps", "link.up.retransmissions", "link.down.fec_repairs", "flows.12.duration_s", "split.resets"]
)
def test_names_of_metrics(name: str) -> None:
    check_metric(name)


@pytest.mark.parametrize(
    "name",
    ["nothing", "link", "link.up", "link.sideways.per", "link.retransmissions.up", "flows.x.duration_s", "flows.0.per",
     "folder"],
)  # fmt: skip
def test_other_names_are_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(ValueError, match=f"no metric '{name}': choose from "):
        check_metric(name)


@pytest.mark.parametrize(
    ("name", "number"),
    [("a", 1.0), ("b.c", 2.5), ("flows.1.d", 3.0), ("flows.2.d", None), ("a.b", None), ("none", None), ("word", None)],
)
def test_numbers_of_a_result(name: str, number: float | None) -> None:
    result = {"a": True, "b": {"c": 2.5}, "flows": [{"d": 2}, {"d": 3}], "none": None, "word": "7"}
    assert metric(result, name) == number
