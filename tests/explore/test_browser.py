"""Opens the page in headless Chromium, drags its knobs and reads its numbers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import browsers
import pytest

import ackclock as ac
from ackclock.explore.lessons import lessons
from ackclock.explore.runs import prepared
from ackclock.figures import numbers
from ackclock.metrics import METRICS

DRAWN = "Number(document.documentElement.dataset.drawn ?? 0)"

#: Controls without a name for screen readers.
NAMELESS = """() => [...document.querySelectorAll('input, select, textarea, button')].filter(each =>
    !each.getAttribute('aria-label') && ![...(each.labels ?? [])].some(label => label.textContent.trim())
    && !each.textContent.trim()).map(each => each.outerHTML)"""

#: The share of a panel's canvas that is not transparent.
INKED = """id => { const canvas = document.querySelector(`#plot-${id} canvas`);
    const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    return pixels.filter((value, place) => place % 4 === 3 && value > 0).length / (pixels.length / 4); }"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsers.chromium() as running:
        yield running


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    command = [sys.executable, "-m", "ackclock", "explore", "--no-open"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


class Page:
    """The page, with what went wrong and what it asked for."""

    def __init__(self, browser: Any, address: str, width: int = 1300, scheme: str = "light") -> None:
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            permissions=["clipboard-read", "clipboard-write"],
        )
        self.page = self.context.new_page()
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(address)
        self.page.wait_for_function(f"() => {DRAWN} > 0")
        self.rest()

    def rest(self) -> None:
        """Wait until every run has its numbers."""
        self.page.locator(".results[aria-busy=false]").wait_for()

    def drag(self, key: str, share: float) -> None:
        """Drag a slider's thumb to a share of its length with the mouse."""
        before = self.page.evaluate(DRAWN)
        slider = self.page.locator(f"[id='knob-{key}']")
        slider.scroll_into_view_if_needed()
        box = slider.bounding_box()
        level = box["y"] + box["height"] / 2
        self.page.mouse.move(box["x"] + box["width"] / 2, level)
        self.page.mouse.down()
        self.page.mouse.move(box["x"] + share * box["width"], level, steps=5)
        self.page.mouse.up()
        self.page.wait_for_function(f"() => {DRAWN} > {before}")
        self.rest()

    def choose(self, key: str, value: str) -> None:
        before = self.page.evaluate(DRAWN)
        self.page.locator(f"[id='knob-{key}']").select_option(value)
        self.page.wait_for_function(f"() => {DRAWN} > {before}")
        self.rest()

    @property
    def text(self) -> str:
        return self.page.locator("#text").input_value()

    def metric(self, name: str) -> str:
        """Return a metric of A as the page shows it."""
        return self.page.locator(f"tr[data-metric={name}] td").first.inner_text()

    @property
    def latency_ms(self) -> float:
        return float(self.page.evaluate("document.documentElement.dataset.latency"))


@pytest.fixture
def opened(browser: Any, address: str) -> Iterator[Page]:
    page = Page(browser, address)
    yield page
    assert page.errors == []
    assert all(url.startswith((address, "blob:", "data:")) for url in page.requests)
    page.context.close()


def test_dragged_knobs_give_the_numbers_of_the_engine(opened: Page) -> None:
    seen, latencies_ms = [], []
    for key, share in (
        ("network.rate", 0.5),
        ("network.rtt", 0.55),
        ("network.queue.limit", 0.3),
        ("flows[0].count", 0.12),
        ("network.loss.probability", 0.2),
    ):
        opened.drag(key, share)
        latencies_ms.append(opened.latency_ms)
        seen.append(opened.text)
        expected = ac.run(prepared(opened.text).plan).metrics()["summary"]
        for name in ("goodput_bps", "utilisation", "queue_delay_mean_s"):
            assert opened.metric(name) == numbers.value(expected[name]["mean"], METRICS[name].unit), (key, name)
    assert len(set(seen)) == 5
    print("from a knob to its picture:", ", ".join(f"{each:.0f} ms" for each in latencies_ms))


def test_every_panel_is_drawn(opened: Page) -> None:
    for panel in ("cwnd", "goodput", "queue", "events", "phase"):
        assert opened.page.evaluate(INKED, panel) > 0.002, panel


def test_choices_and_groups(opened: Page) -> None:
    opened.choose("network.queue.discipline", "fq_codel")
    assert 'discipline = "fq_codel"' in opened.text
    opened.choose("flows[0].congestion", "bbr")
    opened.page.get_by_role("button", name="Add a group").click()
    opened.page.locator("[id='knob-flows[1].count']").wait_for()
    opened.rest()
    assert opened.text.count("[[flows]]") == 2
    opened.choose("network.topology", "parking-lot")
    assert 'topology = "parking-lot"' in opened.text
    assert opened.page.locator("#problems li").count() == 0
    opened.page.get_by_role("button", name="Remove group 2").click()
    opened.page.locator("[id='knob-flows[1].count']").wait_for(state="detached")


def test_every_lesson_opens(opened: Page) -> None:
    for lesson in lessons():
        opened.page.locator("#lesson").select_option(lesson.name)
        opened.rest()
        assert opened.page.locator("#about summary").inner_text() == lesson.title
        assert opened.page.locator("#about li").count() == 3
        assert opened.text == lesson.scenario
        assert opened.page.locator("#problems li").count() == 0
        assert opened.page.locator("caption", has_text="Who got what in B").count() == bool(lesson.compare)


def test_a_mistake_is_marked_at_its_line_and_mended(opened: Page) -> None:
    good = opened.text
    opened.page.locator("#text").fill(good.replace("20Mbit", "20mbps"))
    problem = opened.page.locator("#problems button")
    problem.wait_for()
    assert "line 7: network.rate: found" in problem.inner_text()
    assert opened.page.locator("#lines .wrong").inner_text().strip() == "7"
    problem.click()
    selected = "document.getElementById('text').value.slice(text.selectionStart, text.selectionEnd)"
    assert opened.page.evaluate(selected) == 'rate = "20mbps"'
    opened.page.locator("#text").fill(good)
    problem.wait_for(state="detached")


def test_too_large_a_run_is_explained_and_can_be_undone(opened: Page) -> None:
    opened.page.locator("[id='knob-network.rate-text']").fill("10Tbit")
    opened.page.keyboard.press("Enter")
    opened.page.locator("#problems li").wait_for()
    assert "expected at most 50,000,000 on this page" in opened.page.locator("#problems li").inner_text()
    opened.drag("network.rate", 0.4)
    assert opened.page.locator("#problems li").count() == 0


def test_the_keyboard_turns_a_knob_and_zooms(opened: Page) -> None:
    before = opened.text
    opened.page.locator("[id='knob-network.rate']").focus()
    opened.page.keyboard.press("ArrowRight")
    opened.page.wait_for_function("before => document.getElementById('text').value !== before", arg=before)
    opened.rest()
    plot = opened.page.locator("#plot-cwnd")
    whole = plot.screenshot()
    plot.focus()
    opened.page.keyboard.press("+")
    opened.page.mouse.move(0, 0)
    assert plot.screenshot() != whole


def test_a_second_setting_is_kept_swapped_and_removed(opened: Page) -> None:
    page = opened.page
    page.locator("#drop").click()
    assert page.locator("caption", has_text="in B").count() == 0
    goodput = opened.metric("goodput_bps")
    page.locator("#keep").click()
    opened.drag("network.rate", 0.6)
    cells = page.locator("tr[data-metric=goodput_bps] td").all_inner_texts()
    assert cells[1] == goodput != cells[0]
    page.locator("#swap").click()
    page.wait_for_function(
        "goodput => document.querySelector('tr[data-metric=goodput_bps] td').textContent === goodput", arg=goodput
    )


def test_the_link_restores_both_settings(opened: Page, address: str) -> None:
    opened.drag("network.rate", 0.6)
    opened.page.wait_for_function("() => location.hash.startsWith('#s=')")
    opened.page.wait_for_timeout(600)
    link = opened.page.evaluate("location.href")
    again = Page(opened.context.browser, link)
    assert again.text == opened.text
    assert again.page.locator("caption", has_text="in B").count() == 1
    assert again.errors == []
    again.context.close()


@pytest.mark.parametrize("fragment", ["s=", "s=AAAA", "s=!!", "x"])
def test_a_broken_link_opens_the_page(browser: Any, address: str, fragment: str) -> None:
    page = Page(browser, f"{address}#{fragment}")
    assert page.errors == []
    assert page.text == lessons()[0].scenario
    page.context.close()


def test_what_is_taken_along(opened: Page, tmp_path: Path) -> None:
    opened.page.locator("#command").click()
    opened.page.wait_for_function("() => document.getElementById('status').textContent.startsWith('Command copied')")
    assert opened.page.evaluate("navigator.clipboard.readText()").startswith("ackclock run - <<'TOML'\n")
    with opened.page.expect_download() as waiting:
        opened.page.locator("#download").click()
    waiting.value.save_as(tmp_path / "taken.toml")
    assert (tmp_path / "taken.toml").read_text() == opened.text
    assert waiting.value.suggested_filename == "standing-queue.toml"
    with opened.page.expect_download() as waiting:
        opened.page.locator("#report").click()
    waiting.value.save_as(tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 1e6


def test_names_are_text(opened: Page) -> None:
    evil = "<img src=x onerror='window.broken = 1'>"
    text = opened.text.replace("[[flows]]", f'[[flows]]\nname = "{evil}"')
    opened.page.locator("#text").fill(text)
    opened.page.locator("#legend li", has_text="onerror").wait_for()
    opened.rest()
    assert opened.page.locator("img").count() == 0
    assert opened.page.evaluate("window.broken") is None


def test_packets_move_in_slow_motion(opened: Page) -> None:
    page = opened.page
    page.locator("#motion-from").fill("10")
    page.locator("#motion-play").click()
    caption = page.locator("#motion-caption", has_text="waiting at bottleneck")
    caption.wait_for()
    first = caption.inner_text()
    page.wait_for_function("first => document.getElementById('motion-caption').textContent !== first", arg=first)
    page.locator("#motion-play", has_text="Pause").click()
    page.locator("#motion-position").fill("500")
    assert caption.inner_text().startswith("10.1200 s: ")
    opened.drag("network.rate", 0.6)
    assert page.locator("#motion canvas").is_hidden()
    page.locator("#motion-from").fill("99")
    page.locator("#motion-play").click()
    page.locator("#motion-caption", has_text="expected an instant of the run").wait_for()


def test_models_are_laid_over(opened: Page) -> None:
    opened.page.locator("#models").check()
    opened.page.locator("thead th", has_text="fluid").wait_for()
    assert opened.page.locator("thead th", has_text="theory").count() == 1
    opened.page.locator("#models").uncheck()


def test_every_control_has_a_name(opened: Page) -> None:
    assert opened.page.evaluate(NAMELESS) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 800])
def test_a_narrow_page_does_not_scroll_sideways(browser: Any, address: str, width: int, scheme: str) -> None:
    page = Page(browser, address, width, scheme)
    for lesson in ("standing-queue", "parking-lot", "marks-instead-of-drops"):
        page.page.locator("#lesson").select_option(lesson)
        page.rest()
        assert page.page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.errors == []
    page.context.close()


def test_a_phone_shows_the_figures_above_the_knob_that_is_turned(browser: Any, address: str) -> None:
    page = Page(browser, address, 390)
    for key in ("network.rate", "flows[0].count"):
        page.page.locator(f"[id='knob-{key}']").focus()
        figures, knob = (page.page.locator(place).bounding_box() for place in ("#panels", f"[id='knob-{key}']"))
        assert 0 <= figures["y"] < figures["y"] + figures["height"] <= knob["y"] < knob["y"] + knob["height"] <= 900
    page.context.close()


def test_a_dark_page_follows_the_system(opened: Page) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    assert opened.page.evaluate(background) == "rgb(255, 255, 255)"
    opened.page.emulate_media(color_scheme="dark")
    assert opened.page.evaluate(background) == "rgb(23, 25, 28)"
    assert opened.page.evaluate(INKED, "cwnd") > 0.002
