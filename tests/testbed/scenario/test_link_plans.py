"""The ends of a scenario's link: which packet filters stand where."""

from random import Random

import pytest

from common.sides import SIDES
from linklayer.filters.filtered import Filtered
from linklayer.link import Link
from testbed.scenario.resolver import resolve
from testbed.scenario.run_plan import LinkPlan
from tests.harness.scenarios import scenario


def names(link: Link) -> list[str]:
    """The filters of an end, outermost first."""
    return [each.name for each in link.filters] if isinstance(link, Filtered) else []


@pytest.mark.parametrize(
    ("link", "filters"),
    [
        ({"scheme": "none"}, [[], []]),
        ({"scheme": "slacp", "eln": "ends"}, [["eln-ends"], ["eln-ends"]]),
        ({"scheme": "none", "eln": "base"}, [[], ["eln-base"]]),
        ({"scheme": "split-smart"}, [["tagger"], []]),
        ({"scheme": "ll"}, [[], ["ll"]]),
        ({"scheme": "snoop-smart", "eln": "base"}, [["tagger"], ["snoop-smart", "eln-base"]]),
        # the marker stands next to the link, in whichever order they are named
        ({"scheme": "slacp", "filters": ["eln-base", "snoop"]}, [[], ["snoop", "eln-base"]]),
        ({"scheme": "ll", "filters": "tagger"}, [["tagger"], ["ll"]]),
    ],
    ids=str,
)
def test_filters_stand_at_their_ends_in_order(link: dict[str, str], filters: list[list[str]]) -> None:
    made = resolve(scenario(link=link))
    assert [names(made.stations[side].link.make(Random(1), 0, sized=True)) for side in SIDES] == filters
    # taggers guess nothing
    assert made.guesses == any(name != "tagger" for each in filters for name in each)


@pytest.mark.parametrize("scheme", ["none", "snoop"])
def test_refit_keeps_the_filters_that_stay(scheme: str) -> None:
    def at(eln: str) -> LinkPlan:
        return resolve(scenario(link={"scheme": scheme, "eln": eln})).stations["down"].link

    link = at("none").make(Random(1), 0, sized=False)
    filters = []
    for eln in ("ends", "base", "base", "none"):
        link = at(eln).refit(link, sized=False)
        assert isinstance(link, Filtered)
        filters.append({each.name: each for each in link.filters})
    own = [] if scheme == "none" else [scheme]
    assert [list(each) for each in filters] == [[*own, "eln-ends"], [*own, "eln-base"], [*own, "eln-base"], own]
    assert filters[1]["eln-base"] is filters[2]["eln-base"]
    assert len({id(each.get(scheme)) for each in filters}) == 1


def test_refit_without_filters_leaves_the_link_bare() -> None:
    made = resolve(scenario(link={"scheme": "none"})).stations["up"].link
    link = made.make(Random(1), 0, sized=False)
    assert made.refit(link, sized=False) is link
