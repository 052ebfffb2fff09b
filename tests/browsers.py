"""Headless Chromium for the tests of pages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

#: Faults of the texts in a page's figures, a line for each: cut at the figure's edge, or overlapping another.
TEXT_FAULTS = """() => {
  const isShown = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const style = getComputedStyle(at);
      if (style.display === 'none' || style.visibility === 'hidden' || Number(style.opacity) === 0) return false;
    }
    return true;
  };
  const boxes = (plot) => [...plot.querySelectorAll('text')]
    .filter((text) => text.textContent.trim() && isShown(text))
    .flatMap((text) => {
      const lines = [...text.querySelectorAll('tspan.line')];
      return (lines.length ? lines : [text]).map((line) => ({
        text, written: line.textContent, box: line.getBoundingClientRect(),
      }));
    })
    .filter(({ box }) => box.width > 0);
  const faults = [];
  for (const plot of document.querySelectorAll('.plot')) {
    const edge = plot.getBoundingClientRect();
    const found = boxes(plot);
    if (!found.length) faults.push(`${plot.id}: no text`);
    found.forEach(({ text, written, box }, number) => {
      const isCutAcross = box.left < edge.left - 1 || box.right > edge.right + 1;
      if (isCutAcross || box.top < edge.top - 1 || box.bottom > edge.bottom + 1)
        faults.push(`${plot.id}: cut: ${written}`);
      for (const other of found.slice(number + 1)) {
        const wide = Math.min(box.right, other.box.right) - Math.max(box.left, other.box.left);
        const high = Math.min(box.bottom, other.box.bottom) - Math.max(box.top, other.box.top);
        if (text !== other.text && wide > 2 && high > 3)
          faults.push(`${plot.id}: over each other: ${written} | ${other.written}`);
      }
    });
  }
  return faults;
}"""


@contextmanager
def chromium() -> Iterator[Any]:
    """Yield a running browser. Without Chromium the test is skipped; where `CI` is set, it fails."""
    executable = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if executable is None:
        message = "no Chromium: install the Debian package chromium"
        pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=executable, args=list(ARGUMENTS))
        yield running
        running.close()
