"""The words of every kind of figure, of every scenario that comes with ackclock: none is cut, none lies over another.

Measured in the rendered figure, for a page with headings and for a column of a journal without.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import rendered
from matplotlib.figure import Figure

from ackclock.errors import InputError
from ackclock.experiments import runner
from ackclock.figures import plots
from ackclock.figures.plots import style
from ackclock.scenario import planning

SCENARIOS = sorted((Path(__file__).parents[3] / "scenarios").glob("*.toml"))
KINDS = {**plots.KINDS, **plots.ON_REQUEST, **plots.OF_CAPTURES}

#: Results that are also drawn for a column: few flows and many, one bottleneck and several.
IN_A_COLUMN = ("dumbbell", "fat-tree", "inventec", "parking-lot", "satellite")


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_no_word_is_cut_or_overprinted(path):
    plan = planning.load(path).point(0).plan
    data = runner.run(runner.quick(plan))
    drawn, result = 0, {}
    pages = ((7.0, True), (3.5, False)) if path.stem in IN_A_COLUMN else ((7.0, True),)
    for width_in, titled in pages:
        for kind, draw in KINDS.items():
            try:
                with plots.page(width_in, titled=titled):
                    figure = draw(data)
            except InputError:  # the run has nothing of this kind
                continue
            drawn += 1
            if faults := rendered.faults(figure):
                result[kind, width_in] = faults
    assert drawn >= 5
    assert not result


def test_what_is_cut_or_overprinted_is_detected():
    figure = Figure(figsize=(2, 2))
    axes = figure.add_axes((0.1, 0.3, 0.8, 0.5))
    axes.set_xticks([])
    axes.set_yticks([])
    assert rendered.faults(figure) == []
    axes.set_ylabel("far too long a name for so low an axis")
    axes.text(0.1, 0.5, "one")
    axes.text(0.15, 0.5, "another")
    assert rendered.faults(figure) == [
        "cut: 'far too long a name for so low an axis'",
        "over each other: 'one' and 'another'",
    ]


def test_ticks_out_of_sight_are_not_present():
    figure = Figure(figsize=(3, 2), layout="constrained")
    axes = figure.subplots()
    axes.set_xticks([0, 1, 2, 100], ["zero", "one", "two", "in sight nowhere"])
    axes.set_xlim(0, 2)
    assert rendered.faults(figure) == []


def test_headings_are_wrapped_and_may_be_left_out():
    name = "A heading that says more about its figure than a column of a journal is wide, and so needs several lines"
    with plots.page(3.5):
        figure = style.figure(3.0)
        figure.subplots()
        style.headline(figure, name, name)
    assert rendered.faults(figure) == []
    assert " ".join(figure.get_suptitle().split()) == name
    with plots.page(3.5, titled=False):
        untitled = style.figure(3.0)
        style.headline(untitled, name, name)
    assert (untitled.get_suptitle(), untitled.texts) == ("", [])
    assert untitled.get_figwidth() == 3.5
    assert untitled.get_figheight() < figure.get_figheight()


def test_a_page_no_figure_can_have_is_rejected():
    with (
        pytest.raises(InputError, match=r"^width_in: found 0.2; expected a width from 1.5 to 30 inches$"),
        plots.page(0.2),
    ):
        pass


def test_a_name_without_end_leaves_room_for_the_figure():
    figure = style.figure(3.0)
    figure.subplots()
    style.headline(figure, "n" * 5000, "w " * 5000)
    assert rendered.faults(figure) == []
    assert figure.get_suptitle().endswith("…")
