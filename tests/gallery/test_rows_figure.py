"""The figure of an entry that draws none: what its legend needs fits."""

from __future__ import annotations

import pytest

from ackclock.gallery import Row, figures
from ackclock.gallery.entry import Published

CLAIM = Published("x", "what is compared", "1", 1.0, "", "page 1", "printed")

READINGS = ("one transfer a pair", "half a load", "load by the losses", "and ABCC fills the queue")


QUEUES = ("12 packets", "120 packets", "120 packets and 64 KiB")


@pytest.mark.parametrize("names", [*(READINGS[:count] for count in (1, 2, 3, 4)), QUEUES])
def test_the_legend_stays_within_the_figure(names):
    found = {f"packet, {name}": [Row("x", (1.0, 1.1), (0.9, 1.1), (0.5, 2.0))] for name in names}
    fig = figures.rows(found, {"x": CLAIM})
    fig.canvas.draw()
    (legend,) = fig.legends
    box = legend.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= fig.bbox.width
    assert len(legend.get_texts()) == len(names) + 3


def test_few_short_names_are_on_one_line():
    fig = figures.rows({"packet": [Row("x", (1.0,), (0.9, 1.1), (0.5, 2.0))]}, {"x": CLAIM})
    fig.canvas.draw()
    heights = {round(text.get_window_extent().y0) for text in fig.legends[0].get_texts()}
    assert len(heights) <= 2  # letters that hang below the line


def test_points_have_the_colour_of_their_engine_in_the_legend():
    """An engine without rows is not in the legend; one that lacks a row leaves the colours of the others."""
    first, second = (Row("x", (1.0,), (0.9, 1.1), (0.5, 2.0), at) for at in ("", "later"))
    fig = figures.rows({"theory": [], "packet": [first], "ns2": [first, second]}, {"x": CLAIM})
    (legend,) = fig.legends
    names = [text.get_text() for text in legend.get_texts()]
    signs = dict(zip(names, legend.legend_handles, strict=True))
    assert "theory" not in signs
    *_, alone = fig.axes[1].lines
    assert alone.get_color() == signs["ns2"].get_color() != signs["packet"].get_color()
