"""Figures of what captures show, for print."""

from __future__ import annotations

import io
import re

import pytest

from ackclock.cli import plot
from ackclock.errors import InputError
from ackclock.figures import capture_figures, plots


@pytest.mark.parametrize("kind", ["sequence", "pipe", "rtt", "limits", "stalls"])
def test_every_kind_reports_what_it_shows_with_units(result, kind):
    figure = plots.OF_CAPTURES[kind](result.data)
    (ax,) = figure.axes
    assert ax.get_xlabel() == "Time (s)"
    if kind != "stalls":  # flows have names, not numbers
        assert re.search(r"\((MB|segments|ms|Mb/s)\)", ax.get_ylabel())
    svg = io.BytesIO()
    figure.savefig(svg, format="svg")
    assert "nan" not in svg.getvalue().decode().lower()
    assert figure.texts or figure.get_suptitle()


def test_the_lists_of_kinds_are_one():
    assert tuple(plots.OF_CAPTURES) == tuple(capture_figures.KINDS) == tuple(plot.OF_CAPTURES.split(", "))
    assert not plots.OF_CAPTURES.keys() & plots.KINDS.keys()


def test_arguments_are_checked(result):
    with pytest.raises(TypeError):
        plots.sequence(result.data, flow="0")
    with pytest.raises(InputError, match="between"):
        plots.sequence(result.data, between=(2, 1))


def test_a_part_is_drawn_as_requested(result):
    (ax,) = plots.sequence(result.data, flow=0, between=(1, 2)).axes
    assert ax.get_xlim() == (1, 2)


def test_windows_that_are_given_at_times_have_no_sum(result):
    with pytest.raises(InputError, match="known only while they limit"):
        plots.cwnd_total(result.data)
    assert plots.cwnd(result.data).axes


def test_a_time_after_the_end_and_a_flow_of_all_are_rejected(result):
    for kind, figure in plots.OF_CAPTURES.items():
        if kind != "level":
            with pytest.raises(InputError, match="between: found 1,000 s and later; expected times before"):
                figure(result.data, between=(1000, 2000))
    with pytest.raises(InputError, match="flow: found 0; expected none"):
        plots.level(result.data, flow=0)


def test_what_limits_has_its_colours_explained(result):
    (legend,) = plots.limits(result.data).legends
    assert len(legend.get_texts()) > 1
