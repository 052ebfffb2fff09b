"""Measures how long the page of `ackclock explore` takes from a knob to its picture, in headless Chromium.

    python benchmarks/explore.py                  # the first lesson: 20 s at 20 Mb/s
    python benchmarks/explore.py SCENARIO --turns 50

Each turn moves the slider of the rate by a step and waits until the picture is on the screen; then the slider is moved
as fast as a hand does, 60 times a second, and pictures are counted. Prints milliseconds: median, 95th percentile and
greatest; and pictures a second.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import browsers  # type: ignore[import-not-found]

#: Moves the rate's slider to a position.
TURN = """at => { const slider = document.getElementById('knob-network.rate');
    slider.value = at; slider.dispatchEvent(new Event('input', { bubbles: true })); }"""

#: Pictures so far; the time of the last one.
DRAWN, LATENCY = "Number(document.documentElement.dataset.drawn ?? 0)", "document.documentElement.dataset.latency"

#: Positions of the slider: around 20 Mb/s, and the time of a drag in milliseconds.
MIDDLE, DRAG_MS = 460, 3000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scenario", nargs="?", help="scenario file; without one, the first lesson")
    parser.add_argument("--turns", type=int, default=40)
    options = parser.parse_args()
    command = [sys.executable, "-m", "ackclock", "explore", "--no-open", *filter(None, [options.scenario])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            with browsers.chromium() as browser:
                measure(browser.new_page(), process.stdout.readline().strip(), options.turns)
        finally:
            process.terminate()


def measure(page: Any, address: str, turns: int) -> None:
    """Print the latencies of single turns, and the pictures a second of a drag."""
    page.goto(address)
    page.wait_for_function(f"() => {DRAWN} > 0")
    page.locator(".results[aria-busy=false]").wait_for()
    latencies_ms = []
    for turn in range(turns):
        before = page.evaluate(DRAWN)
        page.evaluate(TURN, MIDDLE + turn % 20)
        page.wait_for_function(f"() => {DRAWN} > {before}")
        latencies_ms.append(float(page.evaluate(LATENCY)))
        page.locator(".results[aria-busy=false]").wait_for()
    high = statistics.quantiles(latencies_ms, n=20)[-1]
    print(f"from a knob to its picture: median {statistics.median(latencies_ms):.0f} ms, 95 % within {high:.0f} ms,")
    print(f"at most {max(latencies_ms):.0f} ms ({turns} turns)")
    before = page.evaluate(DRAWN)
    drag = f"""() => new Promise(done => {{ let at = 0; const turn = {TURN};
        const timer = setInterval(() => turn({MIDDLE} + at++ % 60), 1000 / 60);
        setTimeout(() => {{ clearInterval(timer); done(); }}, {DRAG_MS}); }})"""
    page.evaluate(drag)
    print(f"while dragging: {1000 * (page.evaluate(DRAWN) - before) / DRAG_MS:.1f} pictures a second")


if __name__ == "__main__":
    main()
