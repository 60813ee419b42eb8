"""The page in a real browser: who can use it, by names, keys, colours and contrast.

Every test fails on a complaint of the browser's: a script that fails, a request without an answer, a policy broken.
"""

from itertools import combinations

import pytest
from playwright.sync_api import Browser, expect

from tests.harness.browser import Stage, contrast, luminance, names_of, visit
from tests.harness.colours import apart

pytestmark = pytest.mark.patient


def test_everything_that_can_be_used_has_a_name(browser: Browser, past: Stage) -> None:
    past.play()
    with visit(browser, past, token=True) as page:
        expect(page.locator("#live .chart canvas").first).to_be_visible()
        for address in ("#/", "#/demo", "#/runs", f"#/compare/{names_of(past)[0]}/{names_of(past)[1]}"):
            page.evaluate("address => { location.hash = address; }", address)
            page.wait_for_timeout(300)
            nameless = page.evaluate(
                """() => [...document.querySelectorAll("a, button, input, select, summary, [tabindex='0'], [role=img]")]
                    .filter((node) => node.checkVisibility())
                    .filter((node) => !(node.getAttribute("aria-label") || node.textContent.trim()
                        || [...(node.labels ?? [])].some((label) => label.textContent.trim())))
                    .map((node) => node.outerHTML.slice(0, 200))"""
            )
            assert not nameless, address


def test_everything_is_reached_by_keys_in_the_order_it_is_seen(browser: Browser, stage: Stage) -> None:
    stage.play("slacp")
    with visit(browser, stage, token=True) as page:
        address = page.url
        expect(page.locator("#live .chart canvas").first).to_be_visible()
        page.keyboard.press("Tab")
        expect(page.locator(".skip")).to_be_focused()
        place = page.locator(".skip").bounding_box()
        assert place is not None
        assert place["y"] >= 0
        order = []
        for _ in range(16):
            page.keyboard.press("Tab")
            order.append(page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()"))
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none", order[-1]
        assert order[:5] == ["fadelab", "Live", "Demo", "Runs", "Campaigns"]
        assert order[5:10] == ["run-a", "run-b", "theme", "projector", "help"]
        assert order[10:16] == ["window-30", "window-120", "window-all", "up", "down", "both"]
        # Enter on the skip link leads past all that, and the address stays
        page.locator(".skip").press("Enter")
        expect(page.locator("#main")).to_be_focused()
        assert page.url == address
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lines_of_a_chart_are_told_apart_with_any_colour_vision(browser: Browser, past: Stage, scheme: str) -> None:
    a, b = names_of(past)[:2]
    with visit(browser, past, f"#/compare/{a}/{b}", color_scheme=scheme) as page:
        expect(page.locator("#past .chart").first).to_be_visible()
        page.get_by_role("button", name="both", exact=True).last.click()
        shown = page.evaluate(
            """() => Object.fromEntries([...document.querySelectorAll("#past .chart")].map((chart) => [
                chart.dataset.chart,
                [...chart.querySelectorAll(".chip")].map((chip) => {
                    const line = chip.querySelector("line");
                    return {
                        name: chip.getAttribute("aria-label"),
                        dash: line.getAttribute("stroke-dasharray"),
                        colour: line.getAttribute("stroke").match(/[0-9.]+/g).slice(0, 3).map(Number),
                        band: Number(line.getAttribute("stroke-width")) < 1.5,
                    };
                }),
            ]))"""
        )
    lines = {key: [line for line in chart if not line["band"]] for key, chart in shown.items()}
    # in each run: four kinds in each direction, and two flows
    assert len(lines["repairs"]) == 20
    # 10 is four times what is just noticeable
    alike = [
        (key, one["name"], other["name"])
        for key, chart in lines.items()
        for one, other in combinations(chart, 2)
        if one["dash"] == other["dash"] and apart(one["colour"], other["colour"]) < 10
    ]
    assert alike == []
    arq, fec, rebuilt, eln, tcp = (
        next(line for line in lines["repairs"] if line["name"] == f"{name} of A")
        for name in ("up retransmissions", "up FEC frames", "up FEC repairs", "up ELN marks", "bulk-1 TCP retransmits")
    )
    assert len({line["dash"] for line in (arq, fec, rebuilt, eln)}) == 4
    assert (arq["dash"], arq["colour"]) != (tcp["dash"], tcp["colour"])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(browser: Browser, stage: Stage, scheme: str) -> None:
    """WCAG 2.2: 1.4.3 asks for 4.5 of text, 1.4.11 for 3 of lines and of what marks a control."""
    text = {
        ("ink", "surface"), ("ink", "ground"), ("ink", "raised"), ("muted", "surface"), ("muted", "ground"),
        ("muted", "raised"), ("accent", "surface"), ("accent", "ground"), ("on-accent", "accent"), ("good", "surface"),
        ("warn", "surface"), ("bad", "surface"), ("text-a", "surface"), ("text-b", "surface"),
    }  # fmt: skip
    lines = {"run-a", "run-a2", "run-b", "run-b2", "corruption", "given-up", "congestion", "note", "edge"}
    with visit(browser, stage, color_scheme=scheme) as page:
        surface = luminance(page, "surface")
        assert surface > 0.9 if scheme == "light" else surface < 0.05
        for front, back in text:
            assert contrast(page, front, back) >= 4.5, (front, back)
        for line in lines:
            assert contrast(page, line, "surface") >= 3, line
