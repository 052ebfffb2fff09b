"""Opens reports in headless Chromium, without a network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import browsers
import pytest
import synthetic

import ackclock as ac
from ackclock.dataset import Dataset
from ackclock.figures import report

#: Sizes and contents of the figures, as the page has them.
DRAWN = """() => [...document.querySelectorAll('.plot')].map(plot => ({
    id: plot.id,
    drawn: plot.dataset.drawn === 'yes',
    width: plot.getBoundingClientRect().width,
    height: plot.getBoundingClientRect().height,
    traces: plot.querySelectorAll('.trace').length,
    inked: [...plot.querySelectorAll('.trace path')].filter(path => path.getTotalLength() > 5).length,
    titles: [...plot.querySelectorAll('.xtitle, .ytitle, .x2title, .y2title')].map(title => title.textContent),
}))"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsers.chromium() as running:
        yield running


class Page:
    """A report opened offline, with what went wrong and what it asked for."""

    def __init__(self, browser: Any, path: Path, width: int = 1200, height: int = 900, scheme: str = "light") -> None:
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, offline=True, color_scheme=scheme
        )
        self.page = self.context.new_page()
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready=yes]", timeout=30_000)


@pytest.fixture(scope="module")
def demo() -> Dataset:
    return synthetic.sawtooth(flow_count=10, seeds=2, duration_s=30, warmup_s=5)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory, demo: Dataset) -> Path:
    place = tmp_path_factory.mktemp("report")
    return report.write([demo.write(place / "result")], place / "report.html")


def test_the_figures_are_drawn_without_errors_or_requests(browser: Any, path: Path) -> None:
    opened = Page(browser, path)
    assert opened.errors == []
    assert opened.requests == [path.as_uri()]
    figures = {figure["id"]: figure for figure in opened.page.evaluate(DRAWN)}
    assert len(figures) == 6
    for name, figure in figures.items():
        assert figure["drawn"], name
        assert figure["width"] > 500, name
        assert figure["height"] > 300, name
        assert figure["inked"] >= 1, name
        assert any("(" in title for title in figure["titles"]), name
    assert figures["result0-cwnd"]["inked"] >= 10
    assert figures["result0-cdf"]["inked"] >= 6


def test_definitions_appear_on_hover_and_on_focus(browser: Any, path: Path) -> None:
    page = Page(browser, path).page
    about = page.locator("#about-jain")
    assert not about.is_visible()
    page.locator("[aria-describedby=about-jain]").hover()
    assert about.is_visible()
    assert "Jain" in about.inner_text()
    page.mouse.move(0, 0)
    page.locator("[aria-describedby=about-synchronisation]").focus()
    assert page.locator("#about-synchronisation").is_visible()


def test_a_click_in_the_legend_hides_a_flow(browser: Any, path: Path) -> None:
    page = Page(browser, path).page
    visible = "() => document.getElementById('result0-cwnd').data.filter(t => t.visible !== 'legendonly').length"
    assert page.evaluate(visible) == 10
    page.locator("#result0-cwnd .legendtoggle").first.click()
    for _ in range(50):  # a click waits for a possible double click
        if page.evaluate(visible) == 9:
            break
        page.wait_for_timeout(100)
    assert page.evaluate(visible) == 9


def test_zooming_a_figure_over_time_zooms_the_others(browser: Any, path: Path) -> None:
    page = Page(browser, path).page
    page.evaluate("Plotly.relayout('result0-goodput', {'xaxis.range': [10, 12]})")
    ranges = "() => Object.fromEntries([...document.querySelectorAll('.plot')].map(p => [p.id, p.layout.xaxis.range]))"
    page.wait_for_function(f"JSON.stringify(({ranges})()['result0-epochs']) === '[10,12]'")
    found = page.evaluate(ranges)
    over_time = {"result0-cwnd", "result0-cwnd_total", "result0-goodput", "result0-queue", "result0-epochs"}
    assert {name for name, range_s in found.items() if range_s == [10, 12]} == over_time


def test_a_dark_page_has_dark_figures(browser: Any, path: Path) -> None:
    opened = Page(browser, path, scheme="dark")
    paper = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
    drawn = opened.page.evaluate("document.querySelector('#result0-cwnd').layout.paper_bgcolor")
    assert (paper, drawn) == ("rgb(23, 25, 28)", "#17191c")
    assert opened.errors == []
    light = Page(browser, path).page
    assert light.evaluate("document.querySelector('#result0-cwnd').layout.paper_bgcolor") == "white"


@pytest.mark.parametrize("width", [360, 800])
def test_a_narrow_page_does_not_scroll_sideways(browser: Any, path: Path, width: int) -> None:
    opened = Page(browser, path, width)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    assert all(figure["width"] <= width for figure in opened.page.evaluate(DRAWN))
    assert opened.errors == []


@pytest.fixture(scope="module")
def sweep_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a sweep over names whose metrics have long titles."""
    place = tmp_path_factory.mktemp("sweep")
    scenario = place / "queues.toml"
    scenario.write_text(
        """
name = "Queues"
duration = "3s"
warmup = "1s"
repeats = 2
network = { topology = "dumbbell", rate = "10Mbit", rtt = "20ms" }
[[flows]]
name = "a group with a long name"
congestion = "cubic"
start = { jitter = "1s" }
[[flows]]
name = "web"
congestion = "bbr3"
start = { jitter = "1s" }
[sweep]
"network.queue.discipline" = ["fq_codel", "codel", "pie"]
""",
        encoding="utf-8",
    )
    chosen = ["queue_delay_p95_s", "utilisation", "goodput_bps"]
    return report.write_sweeps([ac.sweep(scenario, metrics=chosen, jobs=1, out=place / "sweep")], place / "report.html")


@pytest.mark.parametrize("width", [400, 1200, 2000])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_text_of_a_figure_is_cut_or_lies_over_another(
    browser: Any, path: Path, sweep_path: Path, width: int, scheme: str
) -> None:
    for each in (path, sweep_path):
        opened = Page(browser, each, width, scheme=scheme)
        assert opened.page.evaluate(browsers.TEXT_FAULTS) == []
        opened.context.close()


def test_it_prints_on_paper(browser: Any, path: Path, tmp_path: Path) -> None:
    page = Page(browser, path).page
    page.pdf(path=str(tmp_path / "report.pdf"), format="A4")
    assert (tmp_path / "report.pdf").read_bytes().count(b"/Type /Page\n") in range(4, 14)


def test_several_results_and_odd_names(browser: Any, tmp_path: Path, demo: Dataset) -> None:
    evil = "</script><script>window.broken = 1</script><img src=x onerror='window.broken = 1'>"
    crowd = synthetic.sawtooth(flow_count=40, seeds=1, duration_s=20, warmup_s=5, step_s=0.05)
    crowd.manifest["plan"]["name"] = evil
    crowd.manifest["scenario"] = evil
    out = report.write([demo.write(tmp_path / "a"), crowd.write(tmp_path / "b")], tmp_path / "both.html")
    opened = Page(browser, out)
    assert opened.errors == []
    assert opened.requests == [out.as_uri()]
    assert opened.page.evaluate("window.broken") is None
    figures = opened.page.evaluate(DRAWN)
    assert len(figures) == 3 + 6 + 6
    assert all(figure["drawn"] and figure["inked"] for figure in figures)
